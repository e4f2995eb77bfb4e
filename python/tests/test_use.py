"""What else can be done with a run: text, vectors, weights, notebooks, launchers."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import artel
import numpy as np
import pytest
from conftest import LAYERS

KEYS = dict(epochs=1, batch_size=30, lanes=2, lr=0.1, quiet=True)
PROJECT = pathlib.Path(__file__).resolve().parents[2]


def bits(run):
    return {name: array.tobytes() for name, array in run.state_dict().items()}


def test_text_is_written_as_the_program_writes_it(program, tmp_path):
    (tmp_path / "text.txt").write_text("to be or not to be, that is the question\n" * 60)
    run = artel.train("gpt2", "text.txt", width=32, depth=1, heads=2, context=32, steps=20,
                      batch_size=8, lanes=2, optimizer={"name": "adam", "lr": 0.003}, quiet=True)
    pieces = list(run.generate("to be", tokens=20, temperature=0))
    assert pieces[0] == "to be" and len(pieces) == 21
    theirs = subprocess.run([program, "generate", run.folder, "--prompt", "to be", "--tokens", "20",
                             "--temperature", "0"], capture_output=True, text=True, check=True)
    assert "".join(pieces) + "\n" == theirs.stdout
    first = next(iter(run.generate("to be", tokens=10_000)))  # and stops
    assert first == "to be"
    with pytest.raises(artel.Error, match="BERT"):
        run.embed(["a text"])


def test_texts_are_embedded_as_the_program_embeds_them(program):
    pathlib.Path("text.txt").write_text("the tide was low and slow today\n" * 60)
    run = artel.train("bert_pretraining", "text.txt", task="masked", data_tokenizer="wordpiece 50", data_context=16, depth=2, heads=2,
                      width=16, positions=16, steps=10, batch_size=12, lanes=2, lr=0.005, optimizer="adamw", quiet=True)
    texts = ["the tide", "slow today", "the tide"]
    vectors = run.embed(texts)
    subprocess.run([program, "embed", run.folder, *texts, "--out", "vectors.npy"], check=True, capture_output=True)
    assert vectors.shape == (3, 16) and np.array_equal(vectors, np.load("vectors.npy"))
    assert np.array_equal(vectors[0], vectors[2]) and not np.array_equal(vectors[0], vectors[1])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_training_begins_with_given_weights(blobs):
    run = artel.train(LAYERS, blobs, **KEYS)
    again = artel.train(LAYERS, blobs, weights=run.state_dict(), **dict(KEYS, lr=0.0))
    assert bits(again) == bits(run)


@pytest.mark.parametrize("workers", [1, 2])
def test_fine_tuning_gives_the_programs_bits(blobs, program, workers):
    x, y = blobs
    artel.train(["dense 32", "relu", "dense 16", "relu", "dense 5"], (x, y * 2), out="base", **KEYS)
    np.savez("other.npz", x=-x, y=(y == 1).astype(np.int64))
    subprocess.run([program, "finetune", "base", "--data", "other.npz", "--train", "last 1", "--epochs", "3",
                    "--out", "theirs", "--set", "cluster.lanes=2"], check=True, capture_output=True)
    settings = dict(blocks="last 1", epochs=3, lanes=2, quiet=True, workers=workers)
    expected = bits(artel.load("theirs"))
    assert bits(artel.finetune("base", (-x, y == 1), **settings)) == expected
    run = artel.finetune("base", "other.npz", **settings)
    assert bits(run) == expected
    assert run.folder.name == "base-finetuned-2"
    with pytest.raises(artel.Error, match="no such base"):
        artel.finetune("bas", (x, y))


def test_columns_of_tables_are_described():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"town": ["Ulm", "<b>", None] * 10, "area": range(30), "price": [1.5, 2, 4] * 10})
    columns = artel.columns(frame, target="price")
    assert [(column.name, column.missing) for column in columns] == [("town", 10), ("area", 0), ("price", 0)]
    assert columns[0].use == "2 names" and "like an id" in columns[1].warning and "target" in columns[2].use
    html = columns._repr_html_()
    assert "<th>missing</th>" in html and "&lt;b&gt;" in html and "<b>" not in html
    with pytest.raises(artel.Error, match="expected a table"):
        artel.columns([1, 2])


def test_notebooks_show_runs_networks_and_matrices(blobs):
    run = artel.train(LAYERS, blobs, test=blobs, **dict(KEYS, epochs=3))
    html = run._repr_html_()
    assert "<table>" in html and "<svg" in html and "test_accuracy" in html
    matrix = run.confusion(blobs)
    assert matrix.shape == (3, 3) and matrix.sum() == 300
    assert "<td" in matrix._repr_html_()
    assert "dense 16" in artel.Model(LAYERS)._repr_html_()
    lenet = artel.Model("lenet5")._repr_html_()
    assert "<td>fc3.weight</td><td>10 x 84</td><td>840</td>" in lenet and "<td>all</td>" in lenet


def test_versions_include_modules_that_are_not_imported(capsys):
    script = "import artel; artel.show_versions()"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    for name in ("numpy", "scikit-learn", "pandas"):
        assert re.search(rf"^{name} +(\d+\.\d+|not installed)", shown, re.MULTILINE), shown


def test_dashboard(blobs):
    artel.train(LAYERS, blobs, out="runs/a", **KEYS)
    with artel.dashboard("runs") as board:
        assert b"<html" in urllib.request.urlopen(board.url).read().lower()
    with pytest.raises(artel.Error, match="the dashboard did not start: .*99999") as caught:
        artel.dashboard("runs", port=99999)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", ["pass", "os.kill(os.getpid(), 9)"])
def test_a_dashboard_ends_with_its_program(end):
    pathlib.Path("runs").mkdir()
    script = f"import artel, os; print(artel.dashboard()._process.pid, flush=True); {end}"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stdout
    deadline = time.monotonic() + 30
    while pathlib.Path(f"/proc/{int(shown)}/cmdline").exists() and time.monotonic() < deadline:
        if pathlib.Path(f"/proc/{int(shown)}/cmdline").read_bytes() == b"":
            break  # a zombie: it has ended
        time.sleep(0.02)
    assert time.monotonic() < deadline, "the dashboard still runs"


SCRIPT = f"""
import hashlib, pickle, sys, artel, numpy
a = numpy.load("blobs.npz")
ranks = set()

def say(*words):  # at once, so that the lines of two processes do not mix
    sys.stdout.write(" ".join(map(str, words)) + "\\n")

def estimated(fit):
    # All workers print the same after a fit without a seed.
    model = artel.Classifier(["dense 8", "relu"], workers=2, epochs=2, batch_size=30, keys=dict(lanes=2))
    fit(model)
    weights = b"".join(array.tobytes() for array in model._network.run().state_dict().values())
    say("estimator", model.loss_, model.n_iter_, hashlib.sha256(weights).hexdigest(), model.predict(a["x"]).sum(), "end")
    pickle.loads(pickle.dumps(model)).predict(a["x"])
    return model

for name in sys.argv[1:]:
    if name == "estimator":
        estimated(lambda model: model.fit(a["x"], a["y"]))
        continue
    if name == "continued":
        estimated(lambda model: [model.partial_fit(a["x"][::n], a["y"][::n], classes=range(3)) for n in (1, 2, 1)])
        continue
    run = artel.train({LAYERS!r}, (a["x"], a["y"]), out=name, workers=2, epochs=1, batch_size=30,
                      lanes=2, lr=0.1, quiet=True, callbacks=[lambda state: ranks.add(state.rank)])
    say("summary", run.summary["loss"], run.summary["test_accuracy"], run.summary["epoch"], run.summary["step"], "end")
say("ranks", ranks)
"""


def free_port():
    while True:  # below the ports that the kernel gives to sockets that ask for any
        port = random.randrange(10000, 32000)
        with contextlib.suppress(OSError), socket.socket() as listening:
            listening.bind(("127.0.0.1", port))
            return port


def script(trainings):
    return [sys.executable, "script.py", *trainings]


def launched_by_mpirun(_, trainings):
    if not shutil.which("mpirun"):
        pytest.skip("no mpirun")
    return [["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *script(trainings)]], {}


def launched_by_joining(_, trainings):
    return [script(trainings)] * 2, dict(ARTEL_JOIN=f"127.0.0.1:{free_port()}")


def launched_by_artel_launch(program, trainings):
    """On two machines that are both this one: what ssh would run there is run here."""
    path = os.environ["PATH"]
    pathlib.Path("ssh").write_text('#!/bin/sh\nexec sh -c "$2"\n')
    pathlib.Path("ssh").chmod(0o755)
    hosts = ["--hosts", "127.0.0.1,127.0.0.1", "--port", str(free_port()), "--program", program]
    return [[program, "launch", *hosts, "--", *script(trainings)]], dict(ARTEL_SSH=f"{os.getcwd()}/ssh", PATH=path)


def srun(nodes, trainings):
    """What srun tells each of two tasks."""
    slurm = dict(SLURM_STEP_NUM_TASKS="2", SLURM_JOB_ID=str(os.getpid()), SLURM_STEP_ID=str(nodes),
                 SLURM_STEP_NUM_NODES=str(nodes), SLURM_STEP_NODELIST="localhost")
    return [["env", f"SLURM_PROCID={rank}", *script(trainings)] for rank in range(2)], slurm


def launched_by_srun_on_a_node(_, trainings):
    return srun(1, trainings)


def launched_by_srun_on_two_nodes(_, trainings):
    return srun(2, trainings)


# With the trainings of the script. Workers that meet at an address should train only once.
LAUNCHES = [*((launch, ["first", "estimator", "continued", "second"]) for launch in (launched_by_mpirun, launched_by_srun_on_a_node)),
            *((launch, [training]) for training in ("first", "estimator")
              for launch in (launched_by_joining, launched_by_artel_launch, launched_by_srun_on_two_nodes))]


@pytest.mark.parametrize("launch, trainings", LAUNCHES)
def test_a_script_runs_unchanged_under_launchers(blobs, program, launch, trainings):
    np.savez("blobs.npz", x=blobs[0], y=blobs[1])
    pathlib.Path("script.py").write_text(SCRIPT)
    commands, variables = launch(program, trainings)
    environment = dict(os.environ, OMPI_MCA_btl_tcp_if_include="lo", ARTEL_TOKEN="a" * 64, **variables)
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for command in commands]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    named = [name for name in trainings if name in ("first", "second")]
    assert_both_say_the_same("estimator", len(trainings) - len(named), outputs)
    assert_both_say_the_same("summary", len(named), outputs)
    if not named:
        return
    assert any("2 workers" in output for output in outputs), outputs  # worker 0 reports, whichever process that is
    ranks = sorted(re.findall(r"ranks \{(\w+)\}", "".join(outputs)))
    assert ranks == (["None", "None"] if "ARTEL_JOIN" in variables else ["0", "1"])
    expected = bits(artel.train(LAYERS, blobs, **KEYS))
    for name in named:
        assert bits(artel.load(name)) == expected


def assert_both_say_the_same(word, times, outputs):
    """Each of two workers prints this many lines, and they agree."""
    said = re.findall(rf"{word} (.*?) end", "".join(outputs))
    assert len(said) == 2 * times and all(said.count(line) % 2 == 0 for line in said), outputs


def test_progress_in_notebooks_is_redrawn(tmp_path):
    written = "\repoch 1/2 ━ step 1\x1b[K\repoch 1/2 ━ step 2\x1b[K\r\x1b[Kepoch 1/2: loss 0.5\nlast"
    (tmp_path / "written").write_text(written, encoding="utf-8")
    texts = artel._notebook._texts(os.open(tmp_path / "written", os.O_RDONLY))
    assert list(texts) == ["epoch 1/2 ━ step 1", "epoch 1/2 ━ step 2", "epoch 1/2: loss 0.5", "last"]


def test_the_notebook_of_the_docs_runs():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(PROJECT / "docs" / "python.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": os.getcwd()}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = [o["data"]["text/html"] for o in shown if "text/html" in o.get("data", {})]
    assert any("<svg" in page for page in pages), "the run has no curves"
    assert any("rgba" in page for page in pages), "no confusion matrix"
    assert any("<th>missing</th>" in page for page in pages), "no columns of a table"
    texts = "".join(o.get("text", "") for o in shown if o.output_type == "stream")
    assert "epoch 3/3" in texts, "no progress was shown"
    assert any("loss by epoch" in page for page in pages), "no live curves"


def test_a_quiet_training_shows_nothing_in_a_notebook():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = ["import artel, numpy\nx = numpy.random.default_rng(0).normal(size=(80, 3))",
            "model = artel.Classifier(['dense 4'], epochs=2).fit(x, x[:, 0] > 0)"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in code])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": os.getcwd()}}).execute()
    assert notebook.cells[1].outputs == []
