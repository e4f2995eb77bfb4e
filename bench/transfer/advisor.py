#!/usr/bin/python3
"""`bench/run transfer advisor`: is the advice good? For pairs of base and data, `artel advise --check` goes all four ways; shown
are what the advised way reaches, what the best one reaches (the advice should be within 2 points of it), and the time of the
advice beside that of trying all (at most 5 %).

Bases are small convolutional networks trained on MNIST and on Fashion-MNIST; data is the other set: 100 and 1,000 samples of
it, and all."""
import argparse
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAYERS = ["conv 32 3x3 padding 1", "batch_norm", "relu", "max_pool 2", "conv 64 3x3 padding 1", "batch_norm", "relu", "max_pool 2",
          "conv 128 3x3 padding 1", "batch_norm", "relu", "adaptive_average_pool 2", "flatten", "dense 10"]
PARTS = {"x_train": "train-images", "y_train": "train-labels", "x_test": "t10k-images", "y_test": "t10k-labels"}


def read_idx(folder, name):
    for file in sorted(os.listdir(folder)):
        if name.split("-")[0] in file and name.split("-")[1] in file:
            path = os.path.join(folder, file)
            with (gzip.open if file.endswith(".gz") else open)(path, "rb") as stream:
                data = stream.read()
            axes = data[3]
            shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(axes)]
            return shape, data[4 + 4 * axes:]
    sys.exit(f"bench: {folder} has no {name}")


def folder_of(artel, data):
    """Where the program keeps a data set; it is fetched if it is not there."""
    answer = subprocess.run([artel, "data", "get", data], check=True, capture_output=True, text=True).stdout
    found = re.search(r"(/\S+)", answer)
    return found.group(1).rstrip(".,;:") if found else sys.exit(f"bench: `artel data get {data}` said '{answer.strip()}'")


def npy(shape, data):
    """Bytes as NumPy writes them to a file."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def write_subset(folder, count, path):
    arrays = {part: read_idx(folder, name) for part, name in PARTS.items()}
    order = list(range(arrays["x_train"][0][0]))
    random.Random(1).shuffle(order)
    for part in ("x_train", "y_train"):
        shape, data = arrays[part]
        row = len(data) // shape[0]
        chosen = order[:count]
        arrays[part] = ([len(chosen), *shape[1:]], b"".join(data[i * row:(i + 1) * row] for i in chosen))
    with zipfile.ZipFile(path, "w") as archive:
        for part, (shape, data) in arrays.items():
            archive.writestr(f"{part}.npy", npy(shape, data))


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


def advise(artel, base, data, budget, folder):
    out = subprocess.run([artel, "advise", base, data, "--check", "--budget", str(budget), "--out", os.path.join(folder, "check")],
                         check=True, capture_output=True, text=True).stdout
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
    parser.add_argument("--sizes", default="100,1000,60000", help="numbers of samples (default: 100,1000,60000)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each pair instead of a table")
    arguments = parser.parse_args()
    artel = os.path.abspath(arguments.artel)
    if not arguments.json:
        print(f"{'base':14} {'data':22} {'advised':34} {'reaches':>8} {'best':>8} {'gap':>6} {'time':>7}")
    with tempfile.TemporaryDirectory() as folder:
        sets = ("mnist", "fashion_mnist")
        for own, other in (sets, sets[::-1]):
            base, samples = train_base(artel, own, folder), folder_of(artel, other)
            for size in (int(size) for size in arguments.sizes.split(",")):
                data = os.path.join(folder, f"{other}-{size}.npz")
                write_subset(samples, size, data)
                took, ways = advise(artel, base, data, arguments.budget, folder)
                chosen = next(way for way in ways if way["advised"])
                best = max(way["measured"] for way in ways)
                row = {"base": own, "data": f"{size} of {other}", "advised": chosen["way"], "reaches": chosen["measured"],
                       "best": best, "gap": round(best - chosen["measured"], 4),
                       "share_of_time": round(took / sum(way["took"] for way in ways), 4), "ways": ways}
                print(json.dumps(row) if arguments.json else
                      f"{own:14} {row['data']:22} {row['advised']:34} {row['reaches']:8.4f} {best:8.4f} {row['gap']:6.3f} "
                      f"{100 * row['share_of_time']:6.1f}%", flush=True)


main()
