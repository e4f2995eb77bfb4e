#!/usr/bin/python3
"""Two workers of one thread each that share a network, compared with two workers that exchange nothing.

`gpt` has 6 blocks of width 384 and reads random characters; `mlp` has four layers of 4,096 and sees Fashion-MNIST, 256 pictures a step or, as `mlp64`, 64. They are
shared as pipelines (8 lanes) or as a tensor group (2 lanes). `gpt2` is GPT-2 small on 2 x 32 tokens, with all state in parts,
compared with plain data parallelism. There are no copies of parts on other workers (cluster.mirror_every). `wire` rows are pipelines over 1 Gbit/s (two emulated hosts, which needs root) beside the same on
one host, and with lossless data parallelism over that wire. `cuts` rows are pipelines cut by measured times, compared with ones cut
into equally many layers, with what `artel plan` predicts of that ratio. Sides take turns; each ratio is the median over the rounds of what the two sides gave in one
round. Workers apart each update all weights, those of a mesh only their own: this favours the mesh by a few percent. Memory is
the largest worker's peak. With --newest, the newest PyTorch does what it can do of that, too (bench/peers/pytorch_mesh.py).
Run it on an idle machine: a ratio well above 1 means that something else was running.
"""
import argparse
import dataclasses
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench/sync"))
from two_hosts import TwoHosts  # noqa: E402

WORKERS, CONTEXT, DEADLINE_SECONDS = 2, 64, 400


def mlp(batch):
    return {"batch": batch, "steps": 12, "config": f"""
[data]
set = "fashion_mnist"
[model]
layers = ["flatten", "dense 4096", "relu", "dense 4096", "relu", "dense 4096", "relu", "dense 4096", "relu", "dense 10"]
[train]
batch_size = {batch}
test_batches = 1
optimizer = {{ name = "sgd", lr = 0.01 }}
"""}


NETWORKS = {
    "gpt": {"batch": 16, "steps": 16, "config": f"""
[data]
set = "text"
path = "text.txt"
context = {CONTEXT}
test_fraction = 0
[model]
name = "gpt2"
width = 384
depth = 6
heads = 6
positions = {CONTEXT}
[train]
batch_size = 16
optimizer = {{ name = "adamw", lr = 0.0003 }}
"""},
    "mlp": mlp(256),
    "mlp64": mlp(64),
    "vgg": {"batch": 64, "steps": 8, "config": """
[data]
set = "npz"
path = "images.npz"
test_fraction = 0
[model]
name = "vgg11_bn"
small_images = true
[train]
batch_size = 64
test_batches = 1
optimizer = { name = "sgd", lr = 0.01 }
"""},
    "gpt50k": {"batch": 16, "steps": 8, "config": f"""
[data]
set = "text"
path = "text.txt"
context = {CONTEXT}
test_fraction = 0
[model]
name = "gpt2"
vocabulary = 50257
width = 384
depth = 6
heads = 6
positions = {CONTEXT}
[train]
batch_size = 16
optimizer = {{ name = "adamw", lr = 0.0003 }}
"""},
    "gpt2": {"batch": 2, "steps": 12, "config": """
[data]
set = "text"
path = "text.txt"
context = 32
test_fraction = 0
[model]
name = "gpt2"
vocabulary = 50257
[train]
batch_size = 2
optimizer = { name = "adamw", lr = 0.0003 }
"""},
}
NEWEST = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "artel/peers/bin/python")


@dataclasses.dataclass(frozen=True)
class Side:
    network: str
    lanes: int
    settings: tuple
    rate: str = ""  # of the wire between two hosts; "": one host


@dataclasses.dataclass
class Row:
    name: str
    wanted: float
    own: Side
    beside: Side
    beside_name: str = "two workers apart"
    peer: str = ""  # what the newest PyTorch does of it
    predicted: bool = False  # by `artel plan`, from measured times


APART = ("cluster.local_steps=1000000",)
ALONE = "cluster.mirror_every=0"  # without copies of parts in the memory of other workers


def pipeline(schedule, *more):
    return ("cluster.pipeline=2", f"cluster.schedule={schedule}", ALONE, *more)


def cut_row(network):
    return Row("cuts", 1.0, Side(network, 8, pipeline("1f1b", "cluster.cuts=measured")),
               Side(network, 8, pipeline("1f1b", "cluster.cuts=layers")), "equally many layers", predicted=True)


ROWS = [Row("gpipe", 0.85, Side("gpt", 8, pipeline("gpipe")), Side("gpt", 8, APART)),
        Row("1f1b", 0.85, Side("gpt", 8, pipeline("1f1b")), Side("gpt", 8, APART), peer="pipeline"),
        Row("zero_bubble", 0.93, Side("gpt", 8, pipeline("zero_bubble")), Side("gpt", 8, APART)),
        Row("tensor", 0.9, Side("gpt", 2, ("cluster.tensor=2", ALONE)), Side("gpt", 2, APART)),
        Row("tensor", 0.9, Side("mlp", 2, ("cluster.tensor=2", ALONE)), Side("mlp", 2, APART)),
        Row("sharding", 0.93, Side("gpt2", 2, ("cluster.sharding=weights", ALONE)), Side("gpt2", 2, ()), "whole copies", "shard"),
        Row("wire", 0.9, Side("gpt", 8, pipeline("1f1b"), "1gbit"), Side("gpt", 8, pipeline("1f1b")), "the same on one host"),
        Row("wire", 4, Side("mlp", 8, pipeline("1f1b"), "1gbit"), Side("mlp", 8, (), "1gbit"), "data parallelism"),
        Row("wire", 4, Side("mlp64", 4, pipeline("1f1b"), "1gbit"), Side("mlp64", 4, (), "1gbit"), "data parallelism"),
        cut_row("vgg"), cut_row("gpt50k")]


def npy(kind, shape, data):
    """An array as NumPy writes it, which need not be installed."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def write_images(path, count):
    noise = random.Random(1)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", npy("|u1", (count, 32, 32, 3), noise.randbytes(count * 32 * 32 * 3)))
        file.writestr("y.npy", npy("<i4", (count,), b"".join(noise.randrange(10).to_bytes(4, "little") for _ in range(count))))


def write_files(folder):
    letters = random.Random(1)
    with open(os.path.join(folder, "text.txt"), "w") as file:
        for _ in range(NETWORKS["gpt"]["batch"] * (NETWORKS["gpt"]["steps"] + 2)):
            file.write("".join(letters.choices("abcdefghijklmnopqrstuvwxyz ", k=CONTEXT - 1)) + "\n")
    write_images(os.path.join(folder, "images.npz"), NETWORKS["vgg"]["batch"] * (NETWORKS["vgg"]["steps"] + 2))
    for name, network in NETWORKS.items():
        with open(os.path.join(folder, name + ".toml"), "w") as file:
            file.write(network["config"] + f"[cluster]\nworkers = {WORKERS}\nthreads = 1\n")


def run(commands, folder):
    """Runs them to their ends and returns the bytes of the process, of all that they start, that had the most memory."""
    with open(os.path.join(folder, "output"), "w+") as output:
        processes = [subprocess.Popen(command, cwd=folder, stdout=output, stderr=output) for command in commands]
        end = time.monotonic() + DEADLINE_SECONDS
        most = 0
        for process in processes:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            while ended == 0 and time.monotonic() < end:
                time.sleep(0.05)
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended == 0 or status != 0:
                for other in processes:
                    other.kill()
                output.seek(0)
                sys.exit(f"bench/mesh: {' '.join(commands[0])} failed or took longer than {DEADLINE_SECONDS} s:\n{output.read()}")
            process.returncode = 0
            most = max(most, usage.ru_maxrss * 1024)
        return most


ports = itertools.count(29400)


def measure(program, folder, side):
    """Samples per second of all workers, without the first quarter of the steps and the last one; and peak memory."""
    steps = NETWORKS[side.network]["steps"]
    command = [program, "train", side.network + ".toml", "--out", "run"]
    for setting in [f"train.steps={steps}", f"cluster.lanes={side.lanes}", *side.settings]:
        command += ["--set", setting]
    subprocess.run(["rm", "-rf", os.path.join(folder, "run")], check=True)
    if side.rate:
        with TwoHosts(side.rate) as hosts:
            command += ["--join", f"{hosts.address}:{next(ports)}", "--token", "bench", "--interface", hosts.interface]
            memory = run([hosts.command(rank, [*command, "--rank", str(rank)]) for rank in range(WORKERS)], folder)
    else:
        memory = run([command], folder)
    with open(os.path.join(folder, "run", "metrics.jsonl")) as file:
        seconds = {line["step"]: line["seconds"] for line in map(json.loads, file) if "train/loss" in line}
    first = steps // 4
    return (steps - 1 - first) * NETWORKS[side.network]["batch"] / (seconds[steps - 1] - seconds[first]), memory


def predicted_gain(program, folder, side):
    """By how much cuts by time would be faster than ones into equally many layers."""
    command = [program, "plan", side.network + ".toml", "--pipeline", str(WORKERS), "--lanes", str(side.lanes), "--schedule", "1f1b"]
    text = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS).stdout
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    step = next(line for line in lines if line[0] == "cuts by").index("step ms")
    milliseconds = {line[0]: float(line[step]) for line in lines if line[0] in ("time", "equally many layers")}
    return milliseconds["equally many layers"] / milliseconds["time"]


def measure_peer(mode):
    """The same of PyTorch."""
    command = [NEWEST, os.path.join(ROOT, "bench/peers/pytorch_mesh.py"), mode, "--steps", "12"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    if result.returncode != 0:
        sys.exit(f"bench/mesh: {' '.join(command)} failed with {result.returncode}:\n{result.stdout}{result.stderr}")
    answer = json.loads(result.stdout.splitlines()[-1])
    return answer["samples_per_second"], answer["peak_rss_mb"] * 2**20


def report(row, rounds, peer, predicted, as_json):
    ratios = [each[row.own][0] / each[row.beside][0] for each in rounds]
    found = {"network": row.own.network, "shared": row.name, "beside": row.beside_name,
             "samples_per_second": statistics.median(each[row.own][0] for each in rounds),
             "ratio": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios), "wanted": row.wanted,
             "peak_bytes": max(each[row.own][1] for each in rounds),
             "peak_bytes_beside": max(each[row.beside][1] for each in rounds)}
    if peer:
        found["ratio_to_pytorch"] = statistics.median(each[row.own][0] / each[peer][0] for each in rounds)
        found["peak_bytes_pytorch"] = max(each[peer][1] for each in rounds)
    if predicted:
        found["predicted_ratio"] = predicted
    if as_json:
        print(json.dumps(found))
        return
    text = (f"{row.own.network} {row.name:12} {found['samples_per_second']:8.2f} samples/s, {found['ratio']:.3f} of "
            f"{row.beside_name} ({found['lowest']:.3f} to {found['highest']:.3f}), wanted {row.wanted}; peak "
            f"{found['peak_bytes'] / 2**20:.0f} MiB of {found['peak_bytes_beside'] / 2**20:.0f}")
    if peer:
        text += f"; {found['ratio_to_pytorch']:.2f} x PyTorch, which takes {found['peak_bytes_pytorch'] / 2**20:.0f} MiB"
    if predicted:
        text += f"; {predicted:.3f} predicted"
    print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artel", default=os.path.join(ROOT, "build/release/artel"), help="the program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="rows with this word, such as tensor or mlp")
    parser.add_argument("--newest", action="store_true",
                        help="compare with the PyTorch of bench/peers/newest.txt, too (tools/setup newest)")
    parser.add_argument("--json", action="store_true", help="print one object for each row")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if arguments.only in (None, row.own.network, row.name)]
    if not rows:
        parser.error(f"--only: no row has the word '{arguments.only}'")
    if arguments.newest and not os.access(NEWEST, os.X_OK):
        parser.error(f"{NEWEST} does not exist; run tools/setup newest")
    if os.geteuid() != 0:
        rows = [row for row in rows if not row.own.rate]
        print("without root there are no emulated hosts: rows over a wire are left out", file=sys.stderr)
    sides = list(dict.fromkeys(side for row in rows for side in (row.beside, row.own)))
    peers = {row.peer for row in rows if row.peer and arguments.newest}
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        rounds = []
        for _ in range(arguments.rounds):
            rounds.append({side: measure(arguments.artel, folder, side) for side in sides})
            rounds[-1].update({peer: measure_peer(peer) for peer in peers})
        predicted = {id(row): predicted_gain(arguments.artel, folder, row.own) for row in rows if row.predicted}
    for row in rows:
        report(row, rounds, row.peer if row.peer in peers else None, predicted.get(id(row)), arguments.json)


if __name__ == "__main__":
    main()
