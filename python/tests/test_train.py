"""`artel.train` gives what the program gives, and fails as clearly."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import artel
import numpy as np
import pytest
from conftest import LAYERS



def variable(name):
    """What a launcher has put into the environment after Python has read it."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    return (libc.getenv(name.encode()) or b"").decode()


KEYS = dict(epochs=2, batch_size=30, lanes=4, lr=0.1, quiet=True)


def weights(run):
    return {name: array.copy() for name, array in run.state_dict().items()}


def assert_same_bits(left, right):
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].tobytes() == right[name].tobytes(), name


def write_config(blobs):
    np.savez("blobs.npz", x=blobs[0], y=blobs[1])
    with open("blobs.toml", "w", encoding="utf-8") as file:
        file.write(f"""[data]
set = "npz"
path = "blobs.npz"
[model]
layers = ["dense 16", "relu", "dense 3"]
[train]
epochs = 2
batch_size = 30
optimizer = {{ name = "sgd", lr = 0.1 }}
[cluster]
lanes = 4
""")


def run_program(program, blobs, workers):
    write_config(blobs)
    out = f"program-{workers}"
    subprocess.run([program, "train", "blobs.toml", "--out", out, "-n", str(workers)], check=True,
                   capture_output=True)
    return weights(artel.load(out))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_bits_are_those_of_the_program(program, blobs, workers):
    run = artel.train(LAYERS, blobs, workers=workers, out="python", **KEYS)
    assert run.folder.name == "python"
    assert_same_bits(weights(run), run_program(program, blobs, workers))


def test_a_file_and_its_bits(program, blobs):
    expected = run_program(program, blobs, 1)
    run = artel.train("blobs.toml", out="python", quiet=True)
    assert_same_bits(weights(run), expected)
    assert run.config["train"]["epochs"] == 2
    assert run.summary["step"] == 18
    assert run.history[0]["train/loss"] > 0


def test_predictions_and_evaluation(blobs):
    x, y = blobs
    run = artel.train(LAYERS, blobs, test=(x, y), epochs=5, lr=0.1, batch_size=30, quiet=True)
    assert run.evaluate((x, y))["accuracy"] > 0.9
    scores = run.predict(x)
    assert scores.shape == (300, 3) and scores.dtype == np.float32
    assert (scores.argmax(axis=1) == y).mean() > 0.9
    np.testing.assert_allclose(run.probabilities(x).sum(axis=1), 1)
    again = artel.load(run.folder)
    assert again.predict(x).tobytes() == scores.tobytes()
    assert run.features(x[:5]).shape == (5, 16)
    # The same by hand.
    state = run.state_dict()
    hidden = np.maximum(x @ state["0.weight"].T + state["0.bias"], 0)
    np.testing.assert_allclose(scores, hidden @ state["2.weight"].T + state["2.bias"], rtol=1e-4,
                               atol=1e-4)


def test_callbacks_see_each_step_and_can_stop(blobs):
    seen = []

    def stop_at_seven(state):
        seen.append((state.step, state.loss))
        return state.step < 7

    run = artel.train(LAYERS, blobs, callbacks=[stop_at_seven], **KEYS)
    assert [step for step, _ in seen] == list(range(1, 8))
    assert run.summary["stopped_by"] == "callback"


def test_a_callback_that_raises_is_named_and_chained(blobs):
    def faulty(state):
        if state.step == 3:
            raise ValueError("no more")

    with pytest.raises(artel.Error, match=r"callback faulty.*ValueError: no more") as caught:
        artel.train(LAYERS, blobs, callbacks=[faulty], **KEYS)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_callback_that_raises_names_its_worker(blobs):
    def faulty(state):
        if variable("ARTEL_RANK") == "1" and state.step == 3:
            raise ValueError("no more")

    with pytest.raises(artel.Error, match=r"worker 1.*ValueError: no more"):
        artel.train(LAYERS, blobs, callbacks=[faulty], workers=2, **KEYS)


def test_a_killed_worker_is_survived(blobs):
    def kill(state):
        if variable("ARTEL_RANK") == "1" and not variable("ARTEL_DOORS") and state.step == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    expected = weights(artel.train(LAYERS, blobs, out="whole", **KEYS))
    run = artel.train(LAYERS, blobs, callbacks=[kill], workers=3, out="killed", **KEYS)
    assert_same_bits(weights(run), expected)


def test_training_twice_and_after_numpy_threads(blobs):
    np.ones((500, 500)) @ np.ones((500, 500))
    first = weights(artel.train(LAYERS, blobs, workers=2, **KEYS))
    alone = weights(artel.train(LAYERS, blobs, **KEYS))
    second = weights(artel.train(LAYERS, blobs, workers=2, **KEYS))
    assert_same_bits(first, alone)
    assert_same_bits(first, second)


def test_fork_after_import_does_not_hang(blobs):
    artel.train(LAYERS, blobs, **KEYS)
    child = os.fork()
    if child == 0:
        run = artel.train(LAYERS, blobs, out="child", **KEYS)
        os._exit(0 if run.folder.exists() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_interpreter_continues_while_training(blobs):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    artel.train(LAYERS, blobs, **dict(KEYS, epochs=30))
    done.set()
    thread.join()
    assert len(ticks) > 3


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_saves_and_resumes(blobs, workers):
    np.savez("blobs.npz", x=blobs[0], y=blobs[1])
    script = f"""
import artel, numpy
a = numpy.load("blobs.npz")
def slow(state):
    import time
    time.sleep(0.02)
    if state.step == 3 and state.rank == 0: print("three", flush=True)
try:
    artel.train({LAYERS!r}, (a["x"], a["y"]), out="run", epochs=500, batch_size=30, lanes=4, lr=0.1,
                quiet=True, workers={workers}, callbacks=[slow])
except KeyboardInterrupt as stop:
    print("stopped:", stop)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "three"
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)[0]
    assert "stopped: stopped after a step and saved" in output
    step = artel.load("run").summary["step"]
    assert 3 <= step < 500
    again = artel.train(LAYERS, blobs, out="run", resume=True, steps=step + 5,
                        **dict(KEYS, epochs=500))
    straight = artel.train(LAYERS, blobs, out="straight", steps=step + 5, **dict(KEYS, epochs=500))
    assert_same_bits(weights(again), weights(straight))


def test_python_m_artel_is_the_program(program):
    ours = subprocess.run([sys.executable, "-m", "artel", "info", "lenet5"], capture_output=True,
                          text=True, check=True)
    theirs = subprocess.run([program, "info", "lenet5"], capture_output=True, text=True, check=True)
    assert ours.stdout == theirs.stdout


@pytest.mark.parametrize("words", [
    ["train", "blobs.toml", "-n", "2", "--out", "run"],
    ["train", "blobs.toml", "--folds", "2", "--out", "run"],
    ["train", "blobs.toml", "--dashboard", "--out", "run"],
    ["compare", "blobs.toml", "--strategies", "ring", "--steps", "3", "--out", "run"],
    ["sweep", "blobs.toml", "--set", "train.optimizer.lr=0.1|0.2", "--trials", "1", "--parallel", "1", "--out", "run"],
], ids=lambda words: " ".join(words[:3:2]))
def test_python_m_artel_starts_itself_in_the_same_environment(blobs, words):
    write_config(blobs)
    done = subprocess.run([sys.executable, "-m", "artel", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Err" not in done.stderr and "failed" not in done.stdout, done.stdout + done.stderr
    assert os.path.isdir("run")


def test_prints_of_workers_are_not_lost(blobs, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    np.savez("blobs.npz", x=blobs[0], y=blobs[1])
    script = f"""
import artel, numpy
a = numpy.load("blobs.npz")
print("before")
artel.train({LAYERS!r}, (a["x"], a["y"]), workers=2, epochs=1, batch_size=30, lanes=2, quiet=True,
            callbacks=[lambda state: print("step", state.step, "of worker", state.rank)])
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    steps = [f"step {step} of worker {rank}" for step in range(1, 10) for rank in range(2)]
    assert sorted(output.splitlines()) == sorted(["before", *steps])


@pytest.mark.parametrize("workers", [1, 2])
def test_arrays_at_hand_are_evaluated(blobs, workers):
    x, y = blobs
    run = artel.train(LAYERS, (x[:200], y[:200]), test=(x[200:], y[200:]), workers=workers, **KEYS)
    assert run.evaluate() == run.evaluate((x[200:], y[200:]))
    assert run.evaluate("train")["samples"] == 200
    assert run.confusion().sum() == 100 and np.array_equal(run.confusion(), run.confusion((x[200:], y[200:])))
    held_out = artel.train(LAYERS, blobs, workers=workers, **KEYS)
    assert held_out.evaluate()["samples"] == 30 and held_out.evaluate()["accuracy"] == held_out.summary["test_accuracy"]
    with pytest.raises(artel.Error, match=r"not in its folder; try run.evaluate\(data\)"):
        artel.load(run.folder).evaluate()


def test_a_table_at_hand_is_evaluated():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"town": ["Ulm", "Bonn"] * 60, "area": np.arange(120.0), "price": np.arange(120.0) * 2})
    run = artel.train(["dense 1"], frame, target="price", test=frame[:40], loss="mse", **KEYS)
    assert run.evaluate() == run.evaluate(frame[:40])


def test_the_best_checkpoint_is_used_for_everything(blobs):
    x, y = blobs
    wrong = (y + 1) % 3  # the better the network learns, the worse it judges
    artel.train(LAYERS, blobs, test=(x, wrong), out="run", **dict(KEYS, epochs=8, lr=0.5))
    best, newest = artel.load("run", best=True), artel.load("run")
    assert best.state_dict()["0.weight"].tobytes() != newest.state_dict()["0.weight"].tobytes()
    for run in (best, newest):
        expected = np.zeros((3, 3))
        np.add.at(expected, (y, run.predict(x).argmax(axis=1)), 1)
        assert np.array_equal(run.confusion(blobs), expected)
    assert not np.array_equal(best.confusion(blobs), newest.confusion(blobs))


def test_threads_share_a_run(blobs):
    x, y = blobs
    run = artel.train(LAYERS, blobs, out="run", **KEYS)
    expected, features = run.predict(x), run.features(x)
    for _ in range(5):
        shared = artel.load("run")
        wrong = []

        def use(turn):
            try:
                same = [shared.predict(x).tobytes() == expected.tobytes(), shared.features(x).tobytes() == features.tobytes(),
                        shared.evaluate(list(zip(x, y)))["samples"] == 300, shared.classes == [],
                        shared.state_dict()["0.weight"].shape == (16, 4), shared.confusion(blobs).sum() == 300]
                wrong.extend([turn] * (not all(same)))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=use, args=(turn,)) for turn in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong


@pytest.mark.parametrize("call, text", [
    (lambda: artel.train(3, (np.zeros((4, 2)), np.zeros(4))), "network: got int, expected a list of layers"),
    (lambda: artel.Model(None), "network: got NoneType"),
    (lambda: artel.Model(["dense 2"]).parameters("ab"), r"input_shape: got 'ab', expected whole numbers such as \(3, 32, 32\)"),
    (lambda: artel.Model(["dense 2"]).parameters(4), "input_shape: got 4"),
])
def test_arguments_of_a_wrong_type_are_named(call, text):
    with pytest.raises(artel.Error, match=text):
        call()


MISTAKES = [
    ("model.layers", ["densee 3"]), ("model.layers", ["dense 0"]), ("model.layers", ["conv 3 3x3"]), ("model.name", "lenet"),
    ("train.epochs", -1), ("train.batch_size", 0), ("train.loss", "mes"), ("train.metrics", ["acuracy"]),
    ("train.optimizer.name", "adma"), ("train.optimizer.momentun", 0.9), ("train.schedule.name", "cosin"),
    ("cluster.lanes", 31), ("cluster.threads", "x"), ("cluster.transport", "tpc"), ("data.test_fraction", 2), ("data.path", "missing.npz"),
    ("train.epoch", 3), ("trian.epochs", 3), ("model.weights", "missing.safetensors"),
]


@pytest.mark.parametrize("key, value", MISTAKES, ids=lambda value: str(value))
def test_mistakes_in_values_have_the_message_of_the_program(program, blobs, key, value):
    np.savez("blobs.npz", x=blobs[0], y=blobs[1])
    with open("run.toml", "w", encoding="utf-8") as file:
        file.write("""[data]\nset = "npz"\npath = "blobs.npz"\n[model]\nlayers = ["dense 3"]\n[train]\nbatch_size = 30\n""")
    given = f"{key}={artel._train._text_of(value)}"
    result = subprocess.run([program, "train", "run.toml", "--out", "theirs", "--set", given], capture_output=True, text=True,
                            check=False)
    assert result.returncode == 1
    with pytest.raises(artel.Error) as caught:
        artel.train("run.toml", out="ours", quiet=True, **{key: value})
    text = str(caught.value).replace(", weighted_cross_entropy, weighted_mse", "")  # losses of the estimators
    assert f"artel: error: {text}" == result.stderr.strip().splitlines()[-1]


BAD = [
    (dict(epoch=3), "epoch"),
    (dict(epochs=-1), "train.epochs"),
    (dict(threads="x"), "cluster.threads"),
    (dict(loss="mes"), "did you mean 'mse'"),
]


@pytest.mark.parametrize("words, text", BAD)
def test_bad_keywords_have_the_programs_message(blobs, words, text):
    with pytest.raises(artel.Error) as caught:
        artel.train(LAYERS, blobs, quiet=True, **words)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_errors_in_workers_are_raised_here(blobs):
    with pytest.raises(artel.Error, match="layer 0 'densee 3'"):
        artel.train(["densee 3"], blobs, workers=2, quiet=True)
