#!/usr/bin/python3
"""Two workers of one thread each that train together, beside two that exchange nothing and beside PyTorch's DDP.

Sides take turns, and medians of the rounds are compared. Cases:
  one host       shared memory, canonical reduction: share of the speed without exchange, of the speed of
                 `reduction = "fast"`, and of DDP with Gloo
  1 Gbit/s ...   two emulated hosts over Gloo: without loss, and with `allow_lossy = true`, beside DDP
Run it on an idle machine; emulated hosts need root.
"""
import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy

from two_hosts import TwoHosts

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKERS = 2
DEADLINE_SECONDS = 170
# Layers or name of the model, samples of a worker's step, shape of a sample, steps of a measurement.
MODELS = {
    "mlp": ('layers = ["flatten", "dense 1024", "relu", "dense 1024", "relu", "dense 10"]', 128, (28, 28), 200),
    "vgg11_bn": ('name = "vgg11_bn"\nsmall_images = true', 64, (32, 32, 3), 14),
    "resnet18": ('name = "resnet18"\nsmall_images = true', 64, (32, 32, 3), 8),
}
NO_EXCHANGE = ["cluster.local_steps=1000000"]
EXACT, FAST, LOSSY = [], ["cluster.reduction=fast"], ["cluster.allow_lossy=true"]


class Bench:
    def __init__(self, program, folder, rounds, seconds):
        self.program, self.folder, self.rounds, self.seconds = program, folder, rounds, seconds
        self.ports = itertools.count(29600)

    def config(self, model, steps):
        """A configuration and random samples enough for so many steps, so that no epoch ends meanwhile."""
        description, batch, shape, _ = MODELS[model]
        batch *= WORKERS
        random = numpy.random.default_rng(1)
        count = batch * (steps + 1) + 10
        data = os.path.join(self.folder, f"{model}-{steps}.npz")
        if not os.path.exists(data):
            numpy.savez(data, x=random.integers(0, 256, (count, *shape), dtype=numpy.uint8),
                        y=random.integers(0, 10, count, dtype=numpy.int32))
        path = os.path.join(self.folder, f"{model}.toml")
        with open(path, "w") as file:
            file.write(f"""
[data]
set = "npz"
path = "{data}"
test_fraction = 0.0001
[model]
{description}
[train]
batch_size = {batch}
steps = {steps}
optimizer = {{ name = "sgd", lr = 0.01, momentum = 0.9 }}
[cluster]
workers = {WORKERS}
threads = 1
lanes = {WORKERS}
""")
        return path

    def ours(self, model, settings, hosts=None, steps=None):
        """Samples a second of all workers, without the first quarter of the steps and the last one."""
        steps = steps or MODELS[model][3]
        out = os.path.join(self.folder, "run")
        shutil.rmtree(out, ignore_errors=True)
        command = [self.program, "train", self.config(model, steps), "--out", out]
        for setting in settings:
            command += ["--set", setting]
        if hosts is None:
            self._finish([command])
        else:
            join = ["--join", f"{hosts.address}:{next(self.ports)}", "--token", "bench", "--interface", hosts.interface]
            self._finish([hosts.command(rank, [*command, *join, "--rank", str(rank)]) for rank in range(WORKERS)])
        with open(os.path.join(out, "metrics.jsonl")) as file:
            seconds = {line["step"]: line["seconds"] for line in map(json.loads, file) if "train/loss" in line}
        first, last = steps // 4, steps - 1
        return (last - first) * MODELS[model][1] * WORKERS / (seconds[last] - seconds[first])

    def ddp(self, model, hosts=None):
        script = os.path.join(ROOT, "bench/peers/pytorch_ddp.py")
        address, interface = (hosts.address, hosts.interface) if hosts else ("127.0.0.1", "lo")
        place = ["--address", f"{address}:{next(self.ports)}", "--interface", interface, "--seconds", str(self.seconds)]
        commands = [["/usr/bin/python3", script, model, "--rank", str(rank), *place] for rank in range(WORKERS)]
        if hosts:
            commands = [hosts.command(rank, command) for rank, command in enumerate(commands)]
        answer = json.loads(self._finish(commands))
        self.peer_name = f"PyTorch {answer['version']} DDP, Gloo"
        return answer["samples_per_second"]

    def in_turns(self, **sides):
        """The median of each side over rounds in which all take turns, so that drifts hit all alike."""
        rounds = [{name: measure() for name, measure in sides.items()} for _ in range(self.rounds)]
        return {name: statistics.median(each[name] for each in rounds) for name in sides}

    def one_host(self, model):
        speed = self.in_turns(apart=lambda: self.ours(model, NO_EXCHANGE), exact=lambda: self.ours(model, EXACT),
                              fast=lambda: self.ours(model, FAST), ddp=lambda: self.ddp(model))
        yield self._row(f"{model} one host", speed["exact"], speed["apart"], "two workers that exchange nothing")
        yield self._row(f"{model} one host, canonical", speed["exact"], speed["fast"], 'reduction = "fast"')
        yield self._row(f"{model} one host", speed["exact"], speed["ddp"], self.peer_name)

    def emulated(self, model, rate, name):
        steps = MODELS[model][3]
        lossy_steps = 4 * steps  # "auto" needs some before it chooses
        with TwoHosts(rate) as hosts:
            speed = self.in_turns(apart=lambda: self.ours(model, NO_EXCHANGE),
                                  exact=lambda: self.ours(model, EXACT, hosts, max(8, steps // 4)),
                                  lossy=lambda: self.ours(model, LOSSY, hosts, lossy_steps),
                                  ddp=lambda: self.ddp(model, hosts))
        yield self._row(f"{model} {name}, lossless", speed["exact"], speed["ddp"], self.peer_name)
        yield self._row(f"{model} {name}, allow_lossy", speed["lossy"], speed["ddp"], self.peer_name)
        yield self._row(f"{model} {name}, allow_lossy", speed["lossy"], speed["apart"], "two workers that exchange nothing")

    @staticmethod
    def _row(case, ours, peer, peer_name):
        return {"case": case, "threads": WORKERS, "ours": round(ours, 1), "peer": round(peer, 1), "peer_name": peer_name,
                "unit": "samples/s", "ratio": round(ours / peer, 3)}

    @staticmethod
    def _finish(commands):
        """Runs all at once and returns what the first prints."""
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for command in commands]
        try:
            outputs = [process.communicate(timeout=DEADLINE_SECONDS) for process in started]
        finally:
            for process in started:
                process.kill()
        for process, command, (output, errors) in zip(started, commands, outputs):
            if process.returncode != 0:
                sys.exit(f"bench/sync: {' '.join(command)} failed with {process.returncode}:\n{output}{errors}")
        return outputs[0][0]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/run sync", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; default: all")
    parser.add_argument("--only", choices=("host", "network"), help="one host, or emulated hosts (of mlp and vgg11_bn)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (default: 3)")
    parser.add_argument("--seconds", type=float, default=5, help="length of a turn of DDP (default: 5)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each case instead of a table")
    parser.add_argument("--artel", default=os.path.join(ROOT, "build/release/artel"), help="the program to measure")
    arguments = parser.parse_args()
    for model in arguments.models:
        if model not in MODELS:
            parser.error(f"unknown model '{model}', expected {', '.join(MODELS)}")
    if not os.access(arguments.artel, os.X_OK):
        parser.error(f"{arguments.artel} is not there; run make build")
    return arguments


def main():
    arguments = parse_arguments()
    layout = "{case:32} {ours:>10} {peer:>10} {unit:10} {ratio:>6}  {peer_name}"
    if not arguments.json:
        print(layout.format(case="case", ours="ours", peer="peer", unit="unit", ratio="ratio", peer_name="peer"))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.artel, folder, arguments.rounds, arguments.seconds)
        models = arguments.models or list(MODELS)
        cases = [] if arguments.only == "network" else [bench.one_host(model) for model in models]
        if arguments.only != "host" and os.geteuid() == 0:
            cases += [bench.emulated(model, rate, name) for model in models if model != "resnet18"
                      for rate, name in (("1gbit", "1 Gbit/s"), ("100mbit", "100 Mbit/s"))]
        for row in itertools.chain.from_iterable(cases):
            print(json.dumps(row) if arguments.json else layout.format(**row), flush=True)


if __name__ == "__main__":
    main()
