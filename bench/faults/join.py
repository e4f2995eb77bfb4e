#!/usr/bin/env python3
"""What a worker that joins costs the others: workers on emulated hosts (network namespaces, as root), whose ports have 1 Gbit/s,
train an MLP with Adam; another one joins and leaves again, several times.

The cost is the time of the two steps after a join beyond that of two usual ones, by the clock of worker 0: the change of the
group, and what of the copy of the state (12 bytes for each parameter) the others have to wait for. Prints a line a join, and the
median.
"""
import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEADLINE = 300  # seconds without what is awaited
CONFIG = """
[data]
set = "csv"
path = "data.csv"
test_fraction = 0
[model]
layers = ["dense {width}", "relu", "dense {width}", "relu", "dense {width}", "relu", "dense 2"]
[train]
batch_size = {batch}
steps = 1000000
save_every = 1000000
optimizer = {{ name = "adam", lr = 1e-4 }}
[cluster]
lanes = 8
threads = 1
workers = "{workers}..{most}"
"""


class Hosts:
    """Namespaces with a switch between them."""

    def __init__(self, count, rate):
        self.id, self.count = f"artelj{os.getpid()}", count
        limit = f"tc qdisc add dev %s root tbf rate {rate} burst 256kb latency 100ms"
        subprocess.run(["ip", "netns", "add", f"{self.id}sw"], check=True)
        self.shell("sw", "ip link add br0 type bridge && ip link set br0 up")
        for i in range(count):
            subprocess.run(["ip", "netns", "add", f"{self.id}{i}"], check=True)
            subprocess.run(["ip", "link", "add", "v0", "netns", f"{self.id}{i}", "type", "veth", "peer", "name", f"p{i}", "netns",
                            f"{self.id}sw"], check=True)
            self.shell(i, f"ip addr add 10.97.0.{i + 1}/24 dev v0 && ip link set v0 up && ip link set lo up && {limit % 'v0'}")
            self.shell("sw", f"ip link set p{i} master br0 && ip link set p{i} up && {limit % f'p{i}'}")

    def shell(self, host, command):
        subprocess.run(["ip", "netns", "exec", f"{self.id}{host}", "sh", "-c", command], check=True)

    def start(self, host, log, *words):
        return subprocess.Popen(["ip", "netns", "exec", f"{self.id}{host}", "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"',
                                 f"{self.id}{host}", *words], stdout=log, stderr=log)

    def remove(self):
        for i in ["sw", *range(self.count)]:
            subprocess.run(["ip", "netns", "del", f"{self.id}{i}"], check=False, stderr=subprocess.DEVNULL)


def steps_of(folder):
    """Of each finished step: the seconds, and how many have joined before it."""
    steps = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines() if (folder / "metrics.jsonl").exists() else []:
        if line.endswith("}") and "train/loss" in line:
            values = json.loads(line)
            steps[values["step"]] = values["seconds"], values.get("cluster/joined", 0)
    return steps


def wait_for(condition, what, log):
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what} did not happen within {DEADLINE} s: {Path(log.name).read_text()[-2000:]}")
        time.sleep(0.02)


def cost_of_join(steps, step):
    """Seconds beyond two usual steps, and the usual ones before it and after."""
    def usual(first, last):
        return statistics.median(steps[i][0] - steps[i - 1][0] for i in range(first, last))
    before, after = usual(step - 6, step), usual(step + 2, step + 7)
    return steps[step + 1][0] - steps[step - 1][0] - before - after, before, after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artel", default=str(Path(__file__).resolve().parents[2] / "build/release/artel"), help="the program")
    parser.add_argument("--workers", type=int, default=2, help="before another one joins")
    parser.add_argument("--joins", type=int, default=7)
    parser.add_argument("--width", type=int, default=2048, help="of the layers: twice their square parameters in all")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", default="1gbit", help="of a port")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    artel, most = os.path.abspath(arguments.artel), arguments.workers + 1
    hosts = Hosts(most, arguments.rate)
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            rng = random.Random(1)
            rows = [",".join(f"{rng.random():.3f}" for _ in range(32)) + f",{rng.choice('ab')}" for _ in range(2000)]
            Path("data.csv").write_text(",".join(f"x{i}" for i in range(32)) + ",kind\n" + "\n".join(rows) + "\n")
            Path("run.toml").write_text(CONFIG.format(width=arguments.width, batch=arguments.batch, workers=arguments.workers, most=most))
            run, log = Path("run"), open("log", "w")
            train = (artel, "train", "run.toml")
            for i in range(arguments.workers):
                processes.append(hosts.start(i, log, *train, "--join", "10.97.0.1:29440", "--token", "secret", "--out", "run"))
            costs = []
            for number in range(arguments.joins):
                begin = max(steps_of(run), default=0)
                wait_for(lambda: max(steps_of(run), default=0) >= begin + 8, "training", log)
                begin = max(steps_of(run))
                newcomer = hosts.start(most - 1, log, *train, "--join", "run")
                processes.append(newcomer)
                joined = lambda: [step for step, (_, joins) in steps_of(run).items() if step > begin and joins]
                wait_for(lambda: joined() and max(steps_of(run)) >= joined()[0] + 8, "joining", log)
                cost, before, after = cost_of_join(steps_of(run), joined()[0])
                costs.append((cost, cost / before))
                print(f"join {number + 1}: {cost:.3f} s, {cost / before:.2f} steps of {before:.3f} s ({after:.3f} s with it)", flush=True)
                newcomer.send_signal(signal.SIGTERM)
                newcomer.wait(60)
            seconds, steps = (statistics.median(column) for column in zip(*costs))
            print(f"a join costs the others {seconds:.3f} s, {steps:.2f} steps (medians of {len(costs)})")
        finally:
            for process in processes:
                process.kill()
                process.wait()
            hosts.remove()
            os.chdir("/")


main()
