#!/usr/bin/python3
"""Training steps on an OpenCL device, compared with the processor's kernels.

With a driver for processors (PoCL), both sides use the same cores, so the ratio compares kernels. Both sides take turns; rows show the medians of the
rounds. Also shown, for each network:

  kernels  part of a step in kernels, by `artel bench --profile`: the rest is copies, the update, and launches
  up, down bytes that are copied in a step: samples and new weights, and gradients. Weights and activations stay on the device. No option turns that off,
           so steps without residency cannot be timed

The last lines give the time of a step of a tiny network, which is overhead, and how long a second start takes. It takes about 6 minutes.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARTEL = os.path.join(ROOT, "build/release/artel")
DEADLINE_SECONDS = 300
# By name: the model, the shape of a sample, keys, and the batch.
CASES = {
    "mlp": ("mlp", "784", [], 32),
    "lenet5": ("lenet5", "1x28x28", [], 32),
    "vgg11_bn": ("vgg11_bn", "3x32x32", ["model.small_images=true"], 4),
    "resnet18": ("resnet18", "3x32x32", ["model.small_images=true", "model.width=16"], 8),
    "gpt": ("gpt2", "64", ["model.width=128", "model.depth=2", "model.heads=4", "model.positions=64", "model.vocabulary=65"], 4),
    "vit": ("vit_tiny", "3x32x32", ["model.patch=4", "model.depth=2"], 4),
}
TINY = ("mlp", "8", ["model.width=8"], 8)


def run(*command):
    return subprocess.run([ARTEL, *command], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True).stdout


def step_of(case, device, options):
    model, shape, keys, batch = case
    row = json.loads(run("bench", "train", model, "--input", shape, "--batch", str(batch), "--threads", str(options.threads), "--device", device,
                         "--seconds", str(options.seconds), "--json", *[f"--set={key}" for key in keys]))
    return {**row, "seconds": batch / row["samples_per_second"]}


def share_in_kernels(case, device, options):
    """Of a step, by the profile of a configuration's network: everything but its row "update and waiting"."""
    model, shape, keys, batch = case
    text = run("bench", "--profile", model, "--input", shape, "--batch", str(batch), "--threads", str(options.threads), "--device", device,
               "--seconds", str(options.seconds), *[f"--set={key}" for key in keys])
    return 1 - float(re.search(r"^update and waiting +[\d.]+ +([\d.]+)", text, re.M).group(1)) / 100


def start_seconds(device):
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        run("train", os.path.join(ROOT, "examples/fashion_mnist.toml"), "--out", folder + "/run", "--device", device, "--threads", "1",
            "--set=train.steps=1", "--set=train.test=false")
        return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--models", default=",".join(CASES), help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the processor's side; a driver chooses its own")
    parser.add_argument("--json", action="store_true", help="print one JSON object per row")
    options = parser.parse_args()
    print(run("devices").strip(), flush=True)
    for name in options.models.split(","):
        case = CASES[name]
        sides = {"cpu": [], options.device: []}
        for _ in range(options.rounds):
            for device, rows in sides.items():
                rows.append(step_of(case, device, options))
        cpu, there = (statistics.median(row["seconds"] for row in rows) for rows in sides.values())
        last = sides[options.device][-1]
        row = {"model": name, "batch": case[3], "cpu_ms": 1e3 * cpu, "device_ms": 1e3 * there, "ratio": cpu / there,
               "in_kernels": share_in_kernels(case, options.device, options), "bytes_up": last["bytes_to_device_per_step"],
               "bytes_down": last["bytes_from_device_per_step"]}
        print(json.dumps(row) if options.json else
              f"{name:10} batch {case[3]:3}: cpu {row['cpu_ms']:8.2f} ms, {options.device} {row['device_ms']:8.2f} ms, speed {row['ratio']:.2f} x; "
              f"{100 * row['in_kernels']:.0f} % in kernels; {row['bytes_up'] / 2**20:.2f} MiB up, {row['bytes_down'] / 2**20:.2f} MiB down", flush=True)
    tiny = [step_of(TINY, device, options)["seconds"] for device in ("cpu", options.device)]
    print(f"a step of a tiny network: cpu {1e3 * tiny[0]:.3f} ms, {options.device} {1e3 * tiny[1]:.3f} ms")
    start_seconds(options.device)
    starts = [statistics.median(start_seconds(device) for _ in range(options.rounds)) for device in ("cpu", options.device)]
    print(f"a start with one step: cpu {starts[0]:.2f} s, {options.device} {starts[1]:.2f} s")


if __name__ == "__main__":
    main()
