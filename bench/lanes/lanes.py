#!/usr/bin/python3
"""The price of lanes, compared with its goals.

Rows:
  8         8 lanes compared with 1 lane, with the peak memory
  16        16 lanes compared with 1 lane
  default   this build with its default number of lanes compared with an older one, whose default was one lane per thread
            (--artel-before)
  workers   two workers of one thread each compared with two that exchange nothing, with default settings
  bits      20 steps of every synchronous example on any number of workers, with one thread and with two: the same weights
            (tests/system/examples; not by default)
Processes take turns, so load on the machine hits all of them. Each ratio is the median over the rounds. All but `bits` take about
25 minutes on an idle machine; --only, --threads, and MODEL choose a part."""
import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "bench/sync")]

from training import Worker  # noqa: E402

MEMORY_GOAL = 1.05  # at most
DEFAULT_GOALS = {"median": 0.97, "each": 0.92}
DEFAULT, BEFORE = "default", "before"  # the sides of `default`


@dataclasses.dataclass
class Case:
    """A model with its batch, and the goals of its ratios; no goal: not measured."""
    model: str
    batch: int
    of_8: float = None
    of_16: float = None

    def name(self):
        return f"{self.model} ({self.batch})"


CASES = [Case("mlp", 128, 0.92, 0.80), Case("mlp", 256, 0.96, 0.92), Case("lenet5", 64, 0.95),
         Case("vgg11_bn", 64, 0.90), Case("vgg11_bn", 256, 0.95), Case("resnet18", 64, 0.90), Case("resnet18", 256, 0.95),
         Case("resnet50", 16, 0.95), Case("gpt", 8, 0.95), Case("gpt", 16, None, 0.92), Case("vit", 64, 0.95, 0.92),
         Case("lstm", 64, 0.95, 0.92)]
# Samples of each of the two workers, and the goal.
WORKERS = {"mlp": (64, 0.93), "vgg11_bn": (64, 0.97), "resnet18": (64, 0.97)}
ROWS = ("8", "16", "default", "workers", "bits")


class Report:
    """Prints each ratio with its goal as soon as it is known."""

    def __init__(self, as_json):
        self.as_json = as_json
        self.missed = 0
        if not as_json:
            print(f"{'what':34} {'model (batch)':16} {'threads':>7} {'ratio':>6} {'goal':>6}  {'':6} CPU time")

    def add(self, what, model, threads, ratio, goal, at_most=False, cpu=None):
        met = goal is None or (ratio <= goal if at_most else ratio >= goal)
        self.missed += not met
        if self.as_json:
            print(json.dumps({"what": what, "model": model, "threads": threads, "ratio": round(ratio, 3), "goal": goal, "met": met,
                              "cpu": cpu and round(cpu, 3)}), flush=True)
        else:
            shown = "" if goal is None else f"{'<=' if at_most else '>='}{goal:.2f}"
            by_cpu = "" if cpu is None else f"{cpu:.2f}"
            print(f"{what:34} {model:16} {threads:>7} {ratio:6.2f} {shown:>6}  {'' if met else 'missed':6} {by_cpu}", flush=True)


def start(arguments, case, threads, side):
    """The process of a side: a number of lanes, DEFAULT, or BEFORE."""
    artel = arguments.artel_before if side == BEFORE else arguments.artel
    lanes = {DEFAULT: 0, BEFORE: threads}.get(side, side)
    command = [artel, "bench", "train", case.model, "--batch", str(case.batch), "--threads", str(threads), "--lanes", str(lanes)]
    return Worker(f"artel with {lanes} lanes", [*command, "--interactive"])


def take_turns(arguments, case, threads, sides):
    """What each side gave in each round: at least three, and more while the time lasts."""
    workers = {side: start(arguments, case, threads, side) for side in sides}
    results = {side: [] for side in sides}
    end = time.monotonic() + arguments.budget
    while len(results[sides[0]]) < arguments.rounds or time.monotonic() < end:
        for side, worker in workers.items():
            worker.run(arguments.seconds)
            results[side].append(worker.answer)
            time.sleep(0.05)  # lets spinning threads of the one go to sleep before the other starts
    for worker in workers.values():
        worker.close()
    return results


def ratio(results, side, base, key):
    return statistics.median(a[key] / b[key] for a, b in zip(results[side], results[base]))


def cpu_ratio(results, side, base):
    """None if one of the programs is too old to report its processor time."""
    key = "cpu_seconds_per_step"
    return 1 / ratio(results, side, base, key) if all(key in results[each][0] for each in (side, base)) else None


def sides_of(case, rows):
    lanes = [n for n, goal in ((8, case.of_8), (16, case.of_16)) if goal and str(n) in rows]
    return ([1, *lanes] if lanes else []) + ([DEFAULT, BEFORE] if "default" in rows and case.of_8 else [])


def measure(report, arguments, case, threads):
    """Returns the ratio of the defaults, if it was measured."""
    sides = sides_of(case, arguments.only)
    if not sides:
        return None
    results = take_turns(arguments, case, threads, sides)
    speed = "samples_per_second"
    for n, goal in ((8, case.of_8), (16, case.of_16)):
        if n in results:
            report.add(f"{n} lanes / 1 lane", case.name(), threads, ratio(results, n, 1, speed), goal,
                       cpu=cpu_ratio(results, n, 1))
    if 8 in results:
        report.add("peak memory, 8 lanes / 1 lane", case.name(), threads, ratio(results, 8, 1, "peak_rss_mb"), MEMORY_GOAL, True)
    if DEFAULT not in results:
        return None
    defaults = ratio(results, DEFAULT, BEFORE, speed)
    chosen = results[DEFAULT][0]["lanes"]
    report.add(f"default ({chosen} lanes) / {threads} before", case.name(), threads, defaults, DEFAULT_GOALS["each"],
               cpu=cpu_ratio(results, DEFAULT, BEFORE))
    return defaults


def measure_workers(report, artel, models, rounds):
    from sides import Ours  # needs numpy
    apart = ["cluster.local_steps=1000000"]
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(artel, folder)
        for model, (batch, goal) in WORKERS.items():
            if model not in models:
                continue
            ratios = [ours.speed(model, [], batch=batch) / ours.speed(model, apart, batch=batch) for _ in range(rounds)]
            report.add("two workers / two processes", f"{model} ({batch} each)", 1, statistics.median(ratios), goal)


def check_bits(report, artel):
    """Runs the tests of the examples with all numbers of workers and 20 steps, and without the deadlines of tests."""
    listing = subprocess.run(["ctest", "--test-dir", os.path.dirname(artel), "-R", "^system_examples_", "--show-only=json-v1"],
                             stdout=subprocess.PIPE, check=True)
    for test in json.loads(listing.stdout)["tests"]:
        done = subprocess.run(test["command"], env={**os.environ, "ARTEL_ALL_WORKERS": "1"}, stdout=sys.stderr)
        report.add("identical bits on any workers", test["name"].removeprefix("system_examples_"), "1,2",
                   float(done.returncode == 0), 1.0)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/run lanes", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    known = list(dict.fromkeys(case.model for case in CASES))
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(known)}, or MODEL:BATCH; default: all")
    parser.add_argument("--only", help="rows, with commas between (default: all but `bits`, and `default` with --artel-before)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1, help="of each turn (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=25,
                        help="seconds of rounds for each model and number of threads (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="at least, and of the row `workers` (default: %(default)s)")
    parser.add_argument("--artel", default=os.path.join(ROOT, "build/release/artel"))
    parser.add_argument("--artel-before", metavar="PATH", help="a build from before lanes ran together, for the row `default`")
    parser.add_argument("--json", action="store_true", help="one line for each ratio")
    arguments = parser.parse_args()
    usual = [row for row in ROWS if row != "bits" and (row != "default" or arguments.artel_before)]
    arguments.only = arguments.only.split(",") if arguments.only else usual
    for row in arguments.only:
        if row not in ROWS:
            parser.error(f"--only: unknown '{row}', expected {', '.join(ROWS)}")
    if "default" in arguments.only and not arguments.artel_before:
        parser.error("--only default: needs --artel-before PATH, a build from before lanes ran together")
    for model in arguments.models:
        if model.partition(":")[0] not in known:
            parser.error(f"unknown model '{model}', expected {', '.join(known)}")
    return arguments


def main():
    arguments = parse_arguments()
    chosen = arguments.models
    cases = [case for case in CASES if not chosen or case.model in chosen or f"{case.model}:{case.batch}" in chosen]
    report = Report(arguments.json)
    defaults = []
    for case in cases:
        for threads in arguments.threads:
            measured = measure(report, arguments, case, threads)
            if measured:
                defaults.append(measured)
    if defaults:
        report.add("default / before, median", "all of these", ",".join(map(str, arguments.threads)), statistics.median(defaults),
                   DEFAULT_GOALS["median"])
    if "workers" in arguments.only:
        measure_workers(report, arguments.artel, chosen or WORKERS, arguments.rounds)
    if "bits" in arguments.only:
        check_bits(report, arguments.artel)
    if not arguments.json:
        print(f"{report.missed} missed")


if __name__ == "__main__":
    main()
