#!/usr/bin/python3
"""`bench/run transfer advisor`: is the advice good? For pairs of base and data, `artel advise --check` goes all four ways; shown
are what the advised way reaches, what the best one reaches (the advice should be within 2 points of it), and the time of the
advice relative to that of trying all (at most 5 %).

Bases are small convolutional networks trained on MNIST and on Fashion-MNIST, whose data is the other set, and the published
mobilenet_v2_035 with CIFAR-10 and with pictures of your own: 100 and 1,000 training samples, and all. `--draws 3` repeats each size with
other samples, `--classes 6` takes only the first classes of the data."""
import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from inference import ROOT, set_up_peers  # noqa: E402

LAYERS = ["conv 32 3x3 padding 1", "batch_norm", "relu", "max_pool 2", "conv 64 3x3 padding 1", "batch_norm", "relu", "max_pool 2",
          "conv 128 3x3 padding 1", "batch_norm", "relu", "adaptive_average_pool 2", "flatten", "dense 10"]
PAIRS = {"mnist": "fashion_mnist", "fashion_mnist": "mnist", "mobilenet_v2_035": "cifar10"}

# Reads a data set as `artel data get` keeps it, and writes some of its training samples, and all test samples, to an NPZ file.
SUBSET = """
import glob, gzip, json, sys, numpy
from PIL import Image
folder, count, target, seed, classes = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
def idx(*words):
    file = next(f for f in sorted(glob.glob(folder + "/*")) if all(word in f.split("/")[-1] for word in words))
    data = (gzip.open if file.endswith(".gz") else open)(file, "rb").read()
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * data[3]).reshape(shape)
def cifar(pictures, labels):
    x = [numpy.asarray(Image.open(file)).reshape(-1, 32, 32, 3) for file in sorted(glob.glob(f"{folder}/{pictures}"))]
    return numpy.ascontiguousarray(numpy.concatenate(x).transpose(0, 3, 1, 2)), numpy.array(json.load(open(f"{folder}/{labels}")), numpy.uint8)
if glob.glob(folder + "/*.png"):
    (x, y), (u, v) = cifar("data_batch_*.png", "train_lables.json"), cifar("test_batch.png", "test_lables.json")
elif glob.glob(folder + "/*.bin"):
    read = lambda files: numpy.concatenate([numpy.fromfile(f, numpy.uint8) for f in sorted(glob.glob(f"{folder}/{files}"))]).reshape(-1, 3073)
    (y, x), (v, u) = [(a[:, 0], a[:, 1:].reshape(-1, 3, 32, 32)) for a in (read("data_batch_*.bin"), read("test_batch.bin"))]
else:
    x, y, u, v = idx("train", "images"), idx("train", "labels"), idx("t10k", "images"), idx("t10k", "labels")
x, y, u, v = x[y < classes], y[y < classes], u[v < classes], v[v < classes]
some = numpy.sort(numpy.random.default_rng(seed).permutation(len(x))[:count or len(x)])
numpy.savez(target, x_train=x[some], y_train=y[some], x_test=u, y_test=v)
"""


def folder_of(artel, data):
    """Where the program keeps a data set; it is fetched if it is not there."""
    answer = subprocess.run([artel, "data", "get", data], check=True, capture_output=True, text=True).stdout
    found = re.search(r"(/\S+)", answer)
    return found.group(1).rstrip(".,;:") if found else sys.exit(f"bench: `artel data get {data}` said '{answer.strip()}'")


def train_base(artel, data, folder):
    config = os.path.join(folder, f"{data}.toml")
    with open(config, "w") as file:
        file.write(f'[data]\nset = "{data}"\n[model]\nlayers = {json.dumps(LAYERS)}\n'
                   '[train]\nbatch_size = 128\nepochs = 3\noptimizer = "adam lr=0.001"\n')
    base = os.path.join(folder, f"base-{data}")
    subprocess.run([artel, "train", config, "--out", base], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return base


def seconds(text):
    """Of "1.5 s", "2 min 05 s" or "120.0 ms"."""
    units = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+) (us|ms|s|min|h)\b", text))


def advise(artel, base, data, budget, folder, side):
    size = ["--size", str(side)] if side else []
    out = subprocess.run([artel, "advise", base, data, "--check", "--budget", str(budget), "--out", os.path.join(folder, "check"),
                          *size], check=True, capture_output=True, text=True).stdout
    own = float(re.search(r"in ([\d.]+) s\n", out).group(1))
    rows = [re.split(r" {2,}", line.strip()) for line in out.splitlines()
            if re.match(r"(small model|fine-tune|train all)", line)]
    ways = [{"way": row[0], "forecast": float(row[2]), "measured": float(row[6]), "took": seconds(row[7]),
             "advised": row[-1] == "advised"} for row in rows]
    return own, ways


def main():
    parser = argparse.ArgumentParser(prog="bench/run transfer advisor", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artel", default=os.path.join(ROOT, "build/release/artel"), help="the program to measure")
    parser.add_argument("--budget", type=float, default=300, help="seconds for each fine-tuning (default: 300)")
    parser.add_argument("--bases", default=",".join(PAIRS), help="of %(default)s")
    parser.add_argument("--sizes", default="100,1000,0", help="numbers of training samples, 0 for all (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=1, help="random choices of the training samples (default: 1)")
    parser.add_argument("--classes", type=int, default=10, help="classes of the data to tell apart (default: 10)")
    parser.add_argument("--folder", help="of pictures of your own, one sub-folder for each class")
    parser.add_argument("--json", action="store_true", help="one JSON object for each pair instead of a table")
    arguments = parser.parse_args()
    for base in arguments.bases.split(","):
        if base not in PAIRS:
            parser.error(f"--bases: got '{base}', expected some of {', '.join(PAIRS)}")
    artel = os.path.abspath(arguments.artel)
    python = set_up_peers()
    if not arguments.json:
        print(f"{'base':16} {'data':26} {'advised':34} {'reaches':>8} {'best':>8} {'gap':>6} {'time':>7}")

    def measure(own, base, name, data, side, folder):
        took, ways = advise(artel, base, data, arguments.budget, folder, side)
        chosen = next(way for way in ways if way["advised"])
        best = max(way["measured"] for way in ways)
        row = {"base": own, "data": name, "advised": chosen["way"], "reaches": chosen["measured"], "best": best,
               "gap": round(best - chosen["measured"], 4), "share_of_time": round(took / sum(way["took"] for way in ways), 4),
               "ways": ways}
        print(json.dumps(row) if arguments.json else
              f"{own:16} {name:26} {row['advised']:34} {row['reaches']:8.4f} {best:8.4f} {row['gap']:6.3f} "
              f"{100 * row['share_of_time']:6.1f}%", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for own in arguments.bases.split(","):
            published = own == "mobilenet_v2_035"
            base, samples = own if published else train_base(artel, own, folder), folder_of(artel, PAIRS[own])
            for size, draw in itertools.product((int(size) for size in arguments.sizes.split(",")), range(1, arguments.draws + 1)):
                data = os.path.join(folder, f"{own}-{size}.npz")
                subprocess.run([python, "-c", SUBSET, samples, str(size), data, str(draw), str(arguments.classes)], check=True)
                measure(own, base, f"{size or 'all'} of {PAIRS[own]}", data, 64 if published else 0, folder)
        if arguments.folder:
            measure("mobilenet_v2_035", "mobilenet_v2_035", os.path.basename(os.path.abspath(arguments.folder)), arguments.folder,
                    0, folder)


main()
