#!/usr/bin/python3
"""Two workers of one thread each that train together, compared with two that exchange nothing and with PyTorch's DDP.

Sides take turns; each ratio is the median over the rounds of what the two sides gave in one round. Parts:
  host       shared memory: canonical reduction compared with no exchange, with the same if its workers waited for each other
             at each step, with `reduction = "fast"`, and with DDP
  gigabit    two emulated hosts at 1 Gbit/s, over Gloo: without loss compared with DDP, and what "auto" finds with
             `allow_lossy = true` compared with DDP and with no exchange
  slow       the same at 100 Mbit/s
  accuracy   after equal epochs on Fashion-MNIST at 1 Gbit/s: `allow_lossy = true` compared with lossless
  balance    one worker has half a core: compared with the ideal, three quarters of two whole workers
Run it on an idle machine. Emulated hosts and quotas need root.
"""
import argparse
import itertools
import json
import os
import statistics
import tempfile

from quota import Quota
from sides import MODELS, ROOT, WORKERS, Ddp, Ours
from two_hosts import TwoHosts

NO_EXCHANGE = ["cluster.local_steps=1000000"]
EXACT, FAST, LOSSY = [], ["cluster.reduction=fast"], ["cluster.allow_lossy=true"]
APART = "two workers that exchange nothing"
IN_STEP = "the slower of these two at each step"
LOSSY_STEPS = {"mlp": 600, "vgg11_bn": 68}  # half of them are not counted: "auto" chooses then
BALANCE_LANES = 12
ACCURACY_RUNS = {"mlp": {"samples": 60000, "epochs": 4}, "vgg11_bn": {"samples": 16000, "epochs": 3}}
PARTS = ("host", "gigabit", "slow", "accuracy", "balance")


class Bench:
    def __init__(self, ours, ddp, rounds):
        self.ours, self.ddp, self.rounds = ours, ddp, rounds

    def in_turns(self, **sides):
        """What each side gave in each round; they take turns, so drift affects all alike."""
        return [{name: measure() for name, measure in sides.items()} for _ in range(self.rounds)]

    def host(self, model):
        rounds = self.in_turns(apart=lambda: self.ours.speed(model, NO_EXCHANGE),
                               in_step=lambda: self.ours.speed_in_step(model, NO_EXCHANGE),
                               exact=lambda: self.ours.speed(model, EXACT),
                               fast=lambda: self.ours.speed(model, FAST),
                               ddp=lambda: self.ddp.speed(model))
        yield row(f"{model} one host", rounds, "exact", "apart", APART)
        yield row(f"{model} one host", rounds, "exact", "in_step", IN_STEP)
        yield row(f"{model} one host, canonical", rounds, "exact", "fast", 'reduction = "fast"')
        yield row(f"{model} one host", rounds, "exact", "ddp", self.ddp.name)

    def gigabit(self, model):
        return self._network(model, "1 Gbit/s", "1gbit", max(8, MODELS[model][3] // 4))

    def slow(self, model):
        return self._network(model, "100 Mbit/s", "100mbit", 8)

    def _network(self, model, name, rate, exact_steps):
        with TwoHosts(rate) as hosts:
            rounds = self.in_turns(
                apart=lambda: self.ours.speed(model, NO_EXCHANGE),
                exact=lambda: self.ours.speed(model, EXACT, hosts=hosts, steps=exact_steps),
                lossy=lambda: self.ours.speed(model, LOSSY, hosts=hosts, steps=LOSSY_STEPS[model],
                                              first=LOSSY_STEPS[model] // 2),
                ddp=lambda: self.ddp.speed(model, hosts))
        yield row(f"{model} {name}, lossless", rounds, "exact", "ddp", self.ddp.name)
        yield row(f"{model} {name}, allow_lossy", rounds, "lossy", "ddp", self.ddp.name)
        yield row(f"{model} {name}, allow_lossy", rounds, "lossy", "apart", APART)

    def accuracy(self, model):
        with TwoHosts("1gbit") as hosts:
            lossy = self.ours.accuracy(model, LOSSY, hosts=hosts, **ACCURACY_RUNS[model])
        exact = self.ours.accuracy(model, EXACT, **ACCURACY_RUNS[model])  # the same bits on any network
        once = {"lossy": lossy, "exact": exact}
        yield row(f"{model} 1 Gbit/s, allow_lossy", [once], "lossy", "exact", "lossless", "test accuracy")

    def balance(self, model):
        lanes, batch = [f"cluster.lanes={BALANCE_LANES}"], BALANCE_LANES // WORKERS * 64
        with Quota(0.5) as half:
            rounds = self.in_turns(
                ideal=lambda: 0.75 * self.ours.speed(model, lanes, batch=batch, steps=60),
                slowed=lambda: self.ours.speed(model, lanes, slowed=half, batch=batch, steps=128, first=64))
        yield row(f"{model} worker of half speed", rounds, "slowed", "ideal", "3/4 of two workers of full speed")


def row(case, rounds, ours, peer, peer_name, unit="samples/s"):
    digits = 1 if unit == "samples/s" else 4
    return {"case": case, "threads": WORKERS, "ours": round(statistics.median(each[ours] for each in rounds), digits),
            "peer": round(statistics.median(each[peer] for each in rounds), digits), "peer_name": peer_name, "unit": unit,
            "ratio": round(statistics.median(each[ours] / each[peer] for each in rounds), 3)}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/run sync", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; default: all")
    parser.add_argument("--parts", default=",".join(PARTS if os.geteuid() == 0 else PARTS[:1]),
                        help="what to measure, with commas between (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (default: 3)")
    parser.add_argument("--seconds", type=float, default=5, help="length of a turn of DDP (default: 5)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each case instead of a table")
    parser.add_argument("--artel", default=os.path.join(ROOT, "build/release/artel"), help="the program to measure")
    arguments = parser.parse_args()
    arguments.parts = arguments.parts.split(",")
    for given, known in ((arguments.models, MODELS), (arguments.parts, PARTS)):
        for name in given:
            if name not in known:
                parser.error(f"unknown '{name}', expected {', '.join(known)}")
    if not os.access(arguments.artel, os.X_OK):
        parser.error(f"{arguments.artel} does not exist; run make build")
    return arguments


def main():
    arguments = parse_arguments()
    layout = "{case:32} {threads:>7} {ours:>10} {peer:>10} {unit:13} {ratio:>6}  {peer_name}"
    if not arguments.json:
        print(layout.format(case="case", threads="threads", ours="ours", peer="peer", unit="unit", ratio="ratio",
                            peer_name="peer"))
    # A slow network matters where steps are short compared with the gradients; shares are moved in the same way for all models.
    models_of = {"host": list(MODELS), "gigabit": ["mlp", "vgg11_bn"], "slow": ["mlp"],
                 "accuracy": ["mlp", "vgg11_bn"], "balance": ["mlp"]}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Ours(arguments.artel, folder), Ddp(arguments.seconds), arguments.rounds)
        cases = [getattr(bench, part)(model) for part in arguments.parts for model in models_of[part]
                 if model in (arguments.models or MODELS)]
        for result in itertools.chain.from_iterable(cases):
            print(json.dumps(result) if arguments.json else layout.format(**result), flush=True)


if __name__ == "__main__":
    main()
