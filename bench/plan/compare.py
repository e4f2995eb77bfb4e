#!/usr/bin/python3
"""Forecast and measured time and memory of training steps on this machine.

The machine is measured first (`artel plan --measure`); its probes are other networks, or other sizes of them, than those compared here. Each case is
forecast by the cost model, and by `artel plan --exact` if asked for, and measured in turn, on one thread and on all. Rows show the median of the
rounds; the last lines show the median and the worst deviation. Rows of two workers train examples/fashion_mnist.toml, with its network and with
others, on one machine. Run it on an idle machine.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARTEL = os.path.join(ROOT, "build/release/artel")
DEADLINE_SECONDS = 600
FIRST_STEPS = 10
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
GPT = ["model.width=384", "model.depth=6", "model.heads=6", "model.positions=256", "model.vocabulary=65", "train.optimizer=adamw"]
# By name: the model, the shape of a sample, keys, and batches.
CASES = {
    "mlp": ("mlp", "784", [], (32, 256)),
    "vgg11_bn": ("vgg11_bn", "3x32x32", ["model.small_images=true"], (16, 64)),
    "vgg16": ("vgg16", "3x64x64", [], (8,)),
    "resnet34": ("resnet34", "3x64x64", [], (8, 32)),
    "resnet50": ("resnet50", "3x224x224", [], (8,)),
    "resnet44": ("resnet44", "3x32x32", [], (64,)),
    "resnet56": ("resnet56", "3x32x32", [], (32,)),
    "mobilenet_v2": ("mobilenet_v2", "3x224x224", [], (8,)),
    "vit": ("vit_tiny", "3x32x32", ["model.patch=4"], (16, 64)),
    "gpt": ("gpt2", "256", GPT, (2, 8)),
    "char_gpt": ("examples/char_gpt.toml", None, [], (12,)),
    "fashion_mnist": ("examples/fashion_mnist.toml", None, [], (64, 256)),
    "autoencoder": ("examples/autoencoder.toml", None, [], (64,)),
}
# Networks of two workers, trained on the pictures of examples/fashion_mnist.toml.
PAIRS = {"as configured": [], "mlp": ["model.name=mlp"]}
PAIR_FILE = os.path.join(ROOT, "examples/fashion_mnist.toml")


def output_of(*command):
    return subprocess.run([ARTEL, *command], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True, cwd=ROOT).stdout


def settings(keys):
    return [f"--set={key}" for key in keys]


def machine_file(folder, text, cores, devices):
    path = os.path.join(folder, f"machine_{cores}_{devices}.toml")
    text = re.sub(r"^cores = \d+$", f"cores = {cores}\ndevices = {devices}", text, flags=re.M)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def plan_of(machine, subject, shape, keys, workers, *more):
    return output_of("plan", subject, "--as-given", "--on", machine, "--workers", str(workers), *(["--input", shape] if shape else []), *more, *settings(keys))


def forecast(machine, subject, shape, keys, workers, exact=False):
    """Seconds of a step and bytes of a worker, with the lanes, strategy, and mesh that training uses: the last two totals."""
    text = plan_of(machine, subject, shape, keys, workers, *(["--exact"] if exact else []))
    totals = re.findall(r"^total\s+([\d.]+) (\w+)\b", text, re.M)
    if len(totals) < 2:
        raise SystemExit(f"no forecast of {subject} with {workers} workers:\n{text}")
    memory, step = totals[-2:]
    return float(step[0]) * TIMES[step[1]], float(memory[0]) * BYTES[memory[1]]


def measured(subject, shape, keys, batch, threads, options):
    row = json.loads(output_of("bench", "train", subject, "--threads", str(threads), "--lanes", "0", "--batch", str(batch),
                               "--seconds", str(options.seconds), "--json", *(["--input", shape] if shape else []), *settings(keys)))
    seconds = row["cpu_seconds_per_step"] / threads if options.processor else batch / row["samples_per_second"]
    return seconds, row["peak_rss_mb"] * (1 << 20)


def measured_pair(keys, steps):
    """Seconds of a step of two workers of one thread: without the first steps, which create kernels."""
    with tempfile.TemporaryDirectory() as folder:
        output_of("train", PAIR_FILE, "--out", folder + "/run", "-n", "2", "--threads", "1",
                  *settings([*keys, f"train.steps={steps}", "train.test=false"]))
        with open(folder + "/run/metrics.jsonl", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    ends = {row["step"]: row["seconds"] for row in rows if "train/loss" in row}
    return (ends[steps] - ends[FIRST_STEPS]) / (steps - FIRST_STEPS)


class Deviations:
    def __init__(self, name):
        self.name, self.all = name, []

    def add(self, expected, real):
        self.all.append(abs(expected / real - 1))
        return f"{100 * (expected / real - 1):+6.1f} %"

    def show(self):
        if self.all:
            print(f"{self.name}: median {100 * statistics.median(self.all):.1f} %, worst {100 * max(self.all):.1f} % of {len(self.all)} rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(CASES), help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--exact", action="store_true", help="forecast by measured lanes, too")
    parser.add_argument("--steps", type=int, default=200, help="of two workers; 0: leave these rows out")
    parser.add_argument("--processor", action="store_true", help="measure processor time, for a machine that others use")
    parser.add_argument("--json", action="store_true", help="print one JSON object per row")
    options = parser.parse_args()
    times, exacts, memories, pairs = (Deviations(name) for name in ("time of a step", "time of a step, --exact", "memory", "two workers"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "machines.toml")
        print(output_of("plan", "--measure", "-o", path).splitlines()[0], flush=True)
        with open(path, encoding="utf-8") as file:
            machine = file.read()
        for name in options.models.split(","):
            subject, shape, keys, batches = CASES[name]
            if subject.endswith(".toml") and subprocess.run([ARTEL, "info", subject], capture_output=True, cwd=ROOT, check=False).returncode != 0:
                print(f"{name:13} left out: its data is missing (artel info {subject})", flush=True)
                continue
            for batch in batches:
                for threads in sorted({1, os.cpu_count()}):
                    on = machine_file(folder, machine, threads, 1)
                    own = [*keys, f"train.batch_size={batch}"]
                    expected, memory = forecast(on, subject, shape, own, 1)
                    exact = forecast(on, subject, shape, own, 1, exact=True)[0] if options.exact else None
                    rows = [measured(subject, shape, own, batch, threads, options) for _ in range(options.rounds)]
                    real, used = (statistics.median(values) for values in zip(*rows))
                    text = (f"{name:13} batch {batch:4} threads {threads}: forecast {1e3 * expected:8.2f} ms, measured {1e3 * real:8.2f} ms, "
                            f"{times.add(expected, real)}; memory {memory / 2**20:6.0f} MiB, {used / 2**20:6.0f} MiB, {memories.add(memory, used)}")
                    if exact:
                        text += f"; --exact {1e3 * exact:8.2f} ms, {exacts.add(exact, real)}"
                    row = {"model": name, "batch": batch, "threads": threads, "forecast": expected, "exact": exact, "measured": real,
                           "forecast_memory": memory, "measured_memory": used}
                    print(json.dumps(row) if options.json else text, flush=True)
        on = machine_file(folder, machine, 1, 2)
        for name, keys in PAIRS.items() if options.steps and not options.processor else ():
            expected, _ = forecast(on, PAIR_FILE, None, keys, 2)
            real = statistics.median(measured_pair(keys, options.steps) for _ in range(options.rounds))
            text = f"two workers, {name:13}: forecast {1e3 * expected:8.2f} ms, measured {1e3 * real:8.2f} ms, {pairs.add(expected, real)}"
            print(json.dumps({"model": name, "workers": 2, "forecast": expected, "measured": real}) if options.json else text, flush=True)
    for deviations in (times, exacts, memories, pairs):
        deviations.show()


if __name__ == "__main__":
    main()
