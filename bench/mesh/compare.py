#!/usr/bin/python3
"""Two workers of one thread each that share a network, compared with two workers that exchange nothing.

`gpt` has 6 blocks of width 384 and reads random characters; `mlp` has four layers of 4,096 and sees Fashion-MNIST. They are
shared as pipelines (8 lanes) or as a tensor group (2 lanes). `gpt2` is GPT-2 small on 2 x 32 tokens, with all state in parts,
beside plain data parallelism. Sides take turns; each ratio is the median over the rounds of what the two sides gave in one
round. Workers apart each update all weights, those of a mesh only their own: this favours the mesh by a few percent. Memory is
the largest worker's peak. With --newest, the newest PyTorch does what it can do of that, too (bench/peers/pytorch_mesh.py).
Run it on an idle machine: a ratio well above 1 means that something else was running.
"""
import argparse
import dataclasses
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKERS, CONTEXT, DEADLINE_SECONDS = 2, 64, 400
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
    "mlp": {"batch": 256, "steps": 12, "config": """
[data]
set = "fashion_mnist"
[model]
layers = ["flatten", "dense 4096", "relu", "dense 4096", "relu", "dense 4096", "relu", "dense 4096", "relu", "dense 10"]
[train]
batch_size = 256
test_batches = 1
optimizer = { name = "sgd", lr = 0.01 }
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


@dataclasses.dataclass
class Row:
    network: str
    shared: str
    wanted: float
    lanes: int  # those of the workers beside, too
    settings: list
    beside: str = "two workers apart"
    peer: str = ""  # what the newest PyTorch does of it


BESIDE = {"two workers apart": ["cluster.local_steps=1000000"], "whole copies": []}
ROWS = [Row("gpt", "gpipe", 0.85, 8, ["cluster.pipeline=2", "cluster.schedule=gpipe"]),
        Row("gpt", "1f1b", 0.85, 8, ["cluster.pipeline=2", "cluster.schedule=1f1b"], peer="pipeline"),
        Row("gpt", "zero_bubble", 0.93, 8, ["cluster.pipeline=2", "cluster.schedule=zero_bubble"]),
        Row("gpt", "tensor", 0.9, 2, ["cluster.tensor=2"]),
        Row("mlp", "tensor", 0.9, 2, ["cluster.tensor=2"]),
        Row("gpt2", "sharding", 0.93, 2, ["cluster.sharding=weights"], "whole copies", "shard")]


def write_files(folder):
    letters = random.Random(1)
    with open(os.path.join(folder, "text.txt"), "w") as file:
        for _ in range(NETWORKS["gpt"]["batch"] * (NETWORKS["gpt"]["steps"] + 2)):
            file.write("".join(letters.choices("abcdefghijklmnopqrstuvwxyz ", k=CONTEXT - 1)) + "\n")
    for name, network in NETWORKS.items():
        with open(os.path.join(folder, name + ".toml"), "w") as file:
            file.write(network["config"] + f"[cluster]\nworkers = {WORKERS}\nthreads = 1\n")


def run(command, folder):
    """Runs it to its end and returns the bytes of the process, of all that it starts, that had the most memory."""
    with open(os.path.join(folder, "output"), "w+") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        end = time.monotonic() + DEADLINE_SECONDS
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        while ended == 0 and time.monotonic() < end:
            time.sleep(0.05)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended == 0:
            process.kill()
        if ended == 0 or status != 0:
            output.seek(0)
            sys.exit(f"bench/mesh: {' '.join(command)} failed or took longer than {DEADLINE_SECONDS} s:\n{output.read()}")
        process.returncode = 0
        return usage.ru_maxrss * 1024


def measure(program, folder, network, lanes, settings):
    """Samples per second of all workers, without the first quarter of the steps and the last one; and peak memory."""
    steps = NETWORKS[network]["steps"]
    command = [program, "train", network + ".toml", "--out", "run"]
    for setting in [f"train.steps={steps}", f"cluster.lanes={lanes}", *settings]:
        command += ["--set", setting]
    subprocess.run(["rm", "-rf", os.path.join(folder, "run")], check=True)
    memory = run(command, folder)
    with open(os.path.join(folder, "run", "metrics.jsonl")) as file:
        seconds = {line["step"]: line["seconds"] for line in map(json.loads, file) if "train/loss" in line}
    first = steps // 4
    return (steps - 1 - first) * NETWORKS[network]["batch"] / (seconds[steps - 1] - seconds[first]), memory


def measure_peer(mode):
    """The same of PyTorch."""
    command = [NEWEST, os.path.join(ROOT, "bench/peers/pytorch_mesh.py"), mode, "--steps", "12"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    if result.returncode != 0:
        sys.exit(f"bench/mesh: {' '.join(command)} failed with {result.returncode}:\n{result.stdout}{result.stderr}")
    answer = json.loads(result.stdout.splitlines()[-1])
    return answer["samples_per_second"], answer["peak_rss_mb"] * 2**20


def report(row, rounds, peer, as_json):
    own, beside = (row.network, row.lanes, row.shared), (row.network, row.lanes, row.beside)
    ratios = [each[own][0] / each[beside][0] for each in rounds]
    found = {"network": row.network, "shared": row.shared, "beside": row.beside,
             "samples_per_second": statistics.median(each[own][0] for each in rounds),
             "ratio": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios), "wanted": row.wanted,
             "peak_bytes": max(each[own][1] for each in rounds),
             "peak_bytes_beside": max(each[beside][1] for each in rounds)}
    if peer:
        found["ratio_to_pytorch"] = statistics.median(each[own][0] / each[peer][0] for each in rounds)
        found["peak_bytes_pytorch"] = max(each[peer][1] for each in rounds)
    if as_json:
        print(json.dumps(found))
        return
    text = (f"{row.network} {row.shared:12} {found['samples_per_second']:8.2f} samples/s, {found['ratio']:.3f} of "
            f"{row.beside} ({found['lowest']:.3f} to {found['highest']:.3f}), wanted {row.wanted}; peak "
            f"{found['peak_bytes'] / 2**20:.0f} MiB of {found['peak_bytes_beside'] / 2**20:.0f}")
    if peer:
        text += f"; {found['ratio_to_pytorch']:.2f} x PyTorch, which takes {found['peak_bytes_pytorch'] / 2**20:.0f} MiB"
    print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artel", default=os.path.join(ROOT, "build/release/artel"), help="the program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="rows with this word, such as tensor or mlp")
    parser.add_argument("--newest", action="store_true",
                        help="beside the PyTorch of bench/peers/newest.txt, too (tools/setup newest)")
    parser.add_argument("--json", action="store_true", help="print one object for each row")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if arguments.only in (None, row.network, row.shared)]
    if not rows:
        parser.error(f"--only: no row has the word '{arguments.only}'")
    if arguments.newest and not os.access(NEWEST, os.X_OK):
        parser.error(f"{NEWEST} does not exist; run tools/setup newest")
    sides = {}
    for row in rows:
        sides[row.network, row.lanes, row.beside] = BESIDE[row.beside]
        sides[row.network, row.lanes, row.shared] = row.settings
    peers = {row.peer for row in rows if row.peer and arguments.newest}
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        rounds = []
        for _ in range(arguments.rounds):
            rounds.append({side: measure(arguments.artel, folder, side[0], side[1], settings)
                           for side, settings in sides.items()})
            rounds[-1].update({peer: measure_peer(peer) for peer in peers})
    for row in rows:
        report(row, rounds, row.peer if row.peer in peers else None, arguments.json)


if __name__ == "__main__":
    main()
