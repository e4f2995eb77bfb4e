"""Measures the Python package next to the program, PyTorch, and scikit-learn, and prints the table of docs/python.md: bits, speed,
start, callbacks, tables, memory, and the size of the wheel, each with its goal."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import artel
import numpy as np

PROGRAM = os.environ["ARTEL_PROGRAM"]
PROJECT = pathlib.Path(__file__).resolve().parents[2]
MLP = ["flatten", "dense 512", "relu", "dense 512", "relu", "dense 10"]


def say(what, value, goal=""):
    """A row of the table in docs/python.md."""
    print(f"| {what:64} | {goal:22} | {value} |", flush=True)


def program(config, out, *options):
    path = pathlib.Path(out + ".toml")
    path.write_text(config)
    subprocess.run([PROGRAM, "train", path, "--out", out, *options], check=True, capture_output=True)
    return artel.load(out)


def digits(rows):
    random = np.random.default_rng(0)
    return random.normal(size=(rows, 784)).astype(np.float32), random.integers(0, 10, rows).astype(np.int32)


def config_of(layers, file, **train):
    keys = "\n".join(f"{key} = {json.dumps(value)}" for key, value in train.items())
    return (f'[data]\nset = "npz"\npath = "{file}"\ntest_fraction = 0\n[model]\nlayers = {json.dumps(layers)}\n'
            f'[train]\n{keys}\noptimizer = {{ name = "sgd", lr = 0.1 }}\n')


def bits():
    x, y = digits(2000)
    np.savez("digits.npz", x=x, y=y)
    config = config_of(MLP, "digits.npz", epochs=1, batch_size=128)
    for workers in (1, 2, 3):
        theirs = program(config, f"program-{workers}", "-n", str(workers), "--lanes", "6").state_dict()
        ours = artel.train(MLP, (x, y), epochs=1, batch_size=128, test_fraction=0, lr=0.1, optimizer="sgd", lanes=6,
                           workers=workers, quiet=True).state_dict()
        same = all(ours[name].tobytes() == theirs[name].tobytes() for name in theirs)
        say(f"bits of artel.train and the program, {workers} workers", "identical" if same else "DIFFERENT", "identical")


def speed(rounds):
    """Seconds that the runs themselves report, alternately."""
    x, y = digits(30_000)
    np.savez("digits.npz", x=x, y=y)
    config = config_of(MLP, "digits.npz", epochs=2, batch_size=128)
    text = "to be or not to be, that is the question\n" * 3000
    pathlib.Path("text.txt").write_text(text)
    gpt = dict(width=192, depth=4, heads=6, context=128, steps=30, batch_size=16)
    gpt_config = ('[data]\nset = "text"\npath = "text.txt"\ncontext = 128\n[model]\nname = "gpt2"\nwidth = 192\ndepth = 4\n'
                  'heads = 6\n[train]\nsteps = 30\nbatch_size = 16\n')
    times = {"MLP, batch 128": ([], []), "GPT 4 x 192": ([], [])}
    for i in range(rounds):
        ours = artel.train(MLP, (x, y), epochs=2, batch_size=128, test_fraction=0, lr=0.1, quiet=True)
        theirs = program(config, f"mlp-{i}")
        times["MLP, batch 128"][0].append(ours.summary["seconds"])
        times["MLP, batch 128"][1].append(theirs.summary["seconds"])
        ours = artel.train("gpt2", "text.txt", quiet=True, **gpt)
        theirs = program(gpt_config, f"gpt-{i}")
        times["GPT 4 x 192"][0].append(ours.summary["seconds"])
        times["GPT 4 x 192"][1].append(theirs.summary["seconds"])
    for name, (ours, theirs) in times.items():
        say(f"speed of artel.train / the program, {name}", f"{np.median(theirs) / np.median(ours):.3f}", "0.99")


START = """
import time, sys, os
begun = time.time() - float(os.environ.get("BEGUN_BEFORE", 0))
{imports}
x = numpy.zeros((1000, 20), "f4"); y = numpy.arange(1000) % 2
{train}
"""
START_ARTEL = START.format(imports="import artel, numpy", train="""
def first(state):
    print(time.time() - begun); sys.stdout.flush(); return False
artel.train(["dense 32", "relu", "dense 2"], (x, y.astype("i4")), callbacks=[first], quiet=True)
""")
START_TORCH = START.format(imports="import torch, numpy", train="""
model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.nn.functional.cross_entropy(model(torch.from_numpy(x[:32])), torch.from_numpy(y[:32])).backward()
optimizer.step()
print(time.time() - begun)
""")


def start(rounds):
    for name, python, script in (("artel", sys.executable, START_ARTEL), ("PyTorch", os.environ["ARTEL_PEERS"], START_TORCH)):
        if not os.path.exists(python):
            say(f"import to first step, small MLP, {name}", "not installed: tools/setup newest")
            continue
        seconds = [float(subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout)
                   for _ in range(rounds)]
        say(f"import to first step, small MLP, {name}", f"{np.median(seconds):.2f} s", "0.5 s" if name == "artel" else "")


def callback(rounds):
    x, y = digits(64_000)
    x = np.ascontiguousarray(x[:, :8])
    costs = []
    for _ in range(rounds):
        seconds = []
        for callbacks in ([], [lambda state: state.loss > -1]):
            run = artel.train(["dense 10"], (x, y), callbacks=callbacks, epochs=2, batch_size=32, lanes=1, test_fraction=0,
                              live=False, quiet=True)
            seconds.append(run.summary["seconds"])
        costs.append((seconds[1] - seconds[0]) / 4000)
    say("a Python callback, per step", f"{np.median(costs) * 1e6:.1f} µs", "under 20 µs")


def compare(what, x, y, x_test, y_test, epochs, rounds):
    """The same network, optimizer, batches, and epochs in turns."""
    from sklearn.neural_network import MLPClassifier

    seconds = {}
    for _ in range(rounds):
        for name, model in (("artel", artel.Classifier(["dense 100", "relu"], epochs=epochs, batch_size=200, random_state=0)),
                            ("scikit-learn", MLPClassifier((100,), max_iter=epochs, batch_size=200, random_state=0, tol=0,
                                                           n_iter_no_change=epochs))):
            begun = time.perf_counter()
            model.fit(x, y)
            seconds.setdefault(name, []).append(time.perf_counter() - begun)
            if len(seconds[name]) == rounds:
                say(f"fit {what}, {epochs} epochs, {name}",
                    f"{np.median(seconds[name]):.1f} s, accuracy {model.score(x_test, y_test):.3f}")
    say(f"Classifier.fit, {what}, times as fast as MLPClassifier",
        f"{np.median(seconds['scikit-learn']) / np.median(seconds['artel']):.2f}", "5")


def tables(rows):
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, 50)).astype(np.float32)
    y = (x[:, :10].sum(axis=1) + random.normal(size=rows) > 0).astype(int)
    compare(f"{rows:,} x 50", x, y, x[:10000], y[:10000], 2, 1)


def a9a(rounds):
    """The data set a9a of LIBSVM, which the program fetches; without a network, random rows of its shape."""
    fetched = subprocess.run([PROGRAM, "data", "get", "a9a"], capture_output=True, text=True)
    if fetched.returncode == 0:
        from sklearn.datasets import load_svmlight_file

        folder = pathlib.Path(fetched.stdout.partition(": ")[2].strip())
        parts = [load_svmlight_file(folder / name, n_features=123) for name in ("a9a", "a9a.t")]
        (x, y), (x_test, y_test) = [(x.toarray().astype(np.float32), (y > 0).astype(int)) for x, y in parts]
        what = "a9a"
    else:
        random = np.random.default_rng(0)
        x = (random.random((48_842, 123)).argsort(axis=1) < 14).astype(np.float32)
        y = (x @ random.normal(size=123) + random.normal(size=len(x)) > 0.7).astype(int)
        x, x_test, y, y_test = x[:32_561], x[32_561:], y[:32_561], y[32_561:]
        what = "rows as of a9a"
    compare(f"{what}, {len(x):,} x 123", x, y, x_test, y_test, 10, rounds)


MEMORY = """
import resource, artel, numpy
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def fit(rows):
    x = numpy.ones((rows, 256), numpy.float32)
    y = (numpy.arange(rows) % 2).astype(numpy.int32)
    before = peak()
    {fit}
    return x.nbytes, before
fit(20_000)  # what the program itself needs
size, before = fit({rows})
print((peak() - before + size) / size)
"""


def memory(rows):
    """Peak memory of fitting on a large array, as a multiple of the array."""
    for name, fit in (("artel.train", "artel.train(['dense 2'], (x, y), steps=200, batch_size=1024, test_fraction=0, quiet=True)"),
                      ("artel.Classifier", "artel.Classifier([], epochs=1, batch_size=20000).fit(x, y)")):
        result = subprocess.run([sys.executable, "-c", MEMORY.format(fit=fit, rows=rows)], check=True, capture_output=True, text=True)
        say(f"peak memory of {name} / array of {rows * 1024 / 1e9:.1f} GB", f"{float(result.stdout):.3f}", "at most 1.05")


def wheel():
    found = list((PROJECT / "build/wheel").glob("*.whl"))
    say("size of the wheel", f"{found[0].stat().st_size / 1e6:.1f} MB" if found else "none: make wheel", "under 60 MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large table")
    parser.add_argument("--rounds", type=int, default=5, help="of which the median counts")
    parser.add_argument("--only", choices=["bits", "speed", "start", "callback", "a9a", "tables", "memory", "wheel"])
    parser.add_argument("--array-rows", type=int, default=2_000_000, help="of the array that is to be borrowed; 1 KiB each")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    parts = {"bits": bits, "speed": lambda: speed(rounds), "start": lambda: start(rounds),
             "callback": lambda: callback(rounds), "a9a": lambda: a9a(rounds), "tables": lambda: tables(arguments.rows),
             "memory": lambda: memory(arguments.array_rows), "wheel": wheel}
    warnings.simplefilter("ignore")
    say("what", "measured", "goal")
    say("---", "---", "---")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, part in parts.items():
            if arguments.only in (None, name):
                begun = time.perf_counter()
                part()
                print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


main()
