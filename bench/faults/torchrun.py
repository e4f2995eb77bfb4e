#!/usr/bin/env python3
"""The cost of a worker's death: Artel compared with torchrun, on the same MLP, with 2 to 4 workers of one thread on this machine.

A worker is killed (SIGKILL), and the time counts until the first step is finished that was not finished before: torchrun ends all
workers, starts them again and repeats what they did since their last checkpoint, made each 100 steps or each epoch (468 steps);
Artel continues in the same processes. Steps are seen by worker 0 of PyTorch, and by checkpoints, one a step, of Artel. Prints medians.
"""
import argparse
import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "artel/peers/bin/python3"
STEPS_OF_EPOCH = 468
DEADLINE = 300  # seconds without what is awaited
STALLED = 120  # seconds after a kill in which torchrun makes no step: it is given up


def wait_for(condition, what, step=0.0005):
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what} did not happen within {DEADLINE} s")
        time.sleep(step)


def children(process):
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()
    return [int(child) for child in found]


def end(process):
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    for child in children(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
        process.wait()


def last_step(folder):
    """The last finished one, of PyTorch."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return max(int(line.split()[0]) for line in (folder / "steps").read_text().splitlines()[-1000:])
    return 0


def torchrun(workers, save_every, kills, rng):
    python = str(PEERS) if PEERS.exists() else "/usr/bin/python3"
    times = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = open(folder / "log", "w")
        process = subprocess.Popen([python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}",
                                    "--max-restarts=1000", str(HERE.parent / "peers/pytorch_elastic.py"), name,
                                    "--save-every", str(save_every)], stdout=log, stderr=log)
        try:
            wait_for(lambda: last_step(folder) > save_every, f"step {save_every + 1} of PyTorch: {(folder / 'log').read_text()[-500:]}")
            for _ in range(kills):
                # Anywhere between two checkpoints.
                until = last_step(folder) + rng.randrange(1, save_every)
                wait_for(lambda: last_step(folder) >= until, f"step {until} of PyTorch")
                victim = rng.choice(children(process.pid))
                before, begin = last_step(folder), time.monotonic()
                os.kill(victim, signal.SIGKILL)
                # One more may be finished at the moment of the kill.
                while last_step(folder) <= before + 1 and time.monotonic() < begin + STALLED:
                    time.sleep(0.0005)
                times.append(time.monotonic() - begin)
                if times[-1] >= STALLED:
                    print(f"  torchrun stalled: {(folder / 'log').read_text()[-600:]}", flush=True)
                    break
        finally:
            end(process)
            log.close()
    return times


CONFIG = """
[data]
set = "npz"
path = "images.npz"
test_fraction = 0
[model]
name = "mlp"
[train]
batch_size = 128
steps = 100000000
save_every = 1
optimizer = {{ name = "adam", lr = 0.001 }}
[cluster]
lanes = {lanes}
threads = 1
restarts = 1000
"""


def newest(folder):
    with contextlib.suppress(OSError, ValueError):
        return max(int(name[5:]) for name in os.listdir(folder) if name.startswith("step-") and name[5:].isdigit())
    return 0


def artel(program, workers, kills, rng):
    """Returns the times lost, and those of undisturbed steps."""
    import struct
    import zipfile
    times, usual = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def npy(kind, shape, data):
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}"
            header += " " * (63 - (len(header) + 10) % 64) + "\n"
            return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data

        count = 4096
        with zipfile.ZipFile(folder / "images.npz", "w") as archive:
            archive.writestr("x.npy", npy("|u1", f"{count}, 1, 28, 28", rng.randbytes(count * 784)))
            archive.writestr("y.npy", npy("<i8", f"{count},", struct.pack(f"<{count}q", *(rng.randrange(10) for _ in range(count)))))
        (folder / "run.toml").write_text(CONFIG.format(lanes=workers * 2))
        log = open(folder / "log", "w")
        process = subprocess.Popen([program, "train", "run.toml", "--out", "run", "-n", str(workers)], stdout=log, stderr=log, cwd=folder)
        steps = folder / "run/checkpoints"
        try:
            wait_for(lambda: newest(steps) > 5, f"step 6 of Artel: {(folder / 'log').read_text()[-500:]}")
            for _ in range(kills):
                wait_for(lambda: len(children(process.pid)) == workers, "all workers of Artel")
                time.sleep(1 + rng.random())
                before, begin = newest(steps), time.monotonic()
                wait_for(lambda: newest(steps) > before + 1, "a step of Artel")
                usual.append((time.monotonic() - begin) / 2)
                victim = rng.choice(children(process.pid))
                before, begin = newest(steps), time.monotonic()
                os.kill(victim, signal.SIGKILL)
                wait_for(lambda: newest(steps) > before + 1, "a step of Artel after a kill")
                times.append(time.monotonic() - begin)
        finally:
            end(process)
            log.close()
    return times, usual


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artel", default=str(HERE.parent.parent / "build/release/artel"))
    parser.add_argument("--kills", type=int, default=5, help="of each kind")
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--save-every", default=f"100,{STEPS_OF_EPOCH}", help="steps between torchrun's checkpoints")
    arguments = parser.parse_args()
    rng = random.Random(5)
    for workers in map(int, arguments.workers.split(",")):
        ours, usual = artel(os.path.abspath(arguments.artel), workers, arguments.kills, rng)
        print(f"{workers} workers: Artel loses {statistics.median(ours):.2f} s in the median, {max(ours):.2f} s at most "
              f"(two steps and their checkpoints undisturbed: {2 * statistics.median(usual):.2f} s)", flush=True)
        for save_every in map(int, arguments.save_every.split(",")):
            theirs = torchrun(workers, save_every, arguments.kills, rng)
            print(f"  torchrun with a checkpoint each {save_every} steps: {statistics.median(theirs):.2f} s, {max(theirs):.2f} s at most of {len(theirs)} kills: "
                  f"{statistics.median(theirs) / statistics.median(ours):.0f} times as much", flush=True)


main()
