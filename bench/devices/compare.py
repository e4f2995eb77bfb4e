#!/usr/bin/python3
"""Training steps on an OpenCL device, compared with the processor's kernels.

With a driver for processors (PoCL), both sides use the same cores, so the ratio compares kernels. Both sides take turns; rows show the medians of the
rounds. Also shown, for each network:

  kernels  part of a step in kernels, by `artel bench --profile`: the rest is copies, the update, and launches
  products part of a step in matrix products and convolutions: the ratio of a step's products alone to the whole step
  up, down bytes that are copied in a step: samples and new weights, and gradients. Weights and activations stay on the device. No option turns that off,
           so steps without residency cannot be timed

The first line after the list of devices compares products with calls of CLBlast, if libclblast.so.1 is installed (Debian: libclblast1). The last lines give the time of a step of a tiny network, which is overhead, and how long a second start takes. It takes about 6 minutes.
"""
import argparse
import ctypes
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


def shares(case, device, options):
    """Of a step in kernels and in products, by the profile of a network: without copies, the update, and waiting."""
    model, shape, keys, batch = case
    text = run("bench", "--profile", model, "--input", shape, "--batch", str(batch), "--threads", str(options.threads), "--device", device,
               "--seconds", str(options.seconds), *[f"--set={key}" for key in keys])
    kernels = float(re.search(r"; ([\d.]+) % of the step in kernels$", text, re.M).group(1)) / 100
    # A row ends with: op, perhaps an algorithm, ms, % of step, GFLOP/s.
    products = re.findall(r"\b(?:conv2d|conv_transpose2d|dense|matmul)\w* .*?([\d.]+) +([\d.]+) +[\d.]+ *$", text, re.M)
    return kernels, sum(float(share) for _, share in products) / 100


def clblast_speed(number, n):
    """FLOP/s of a product of n x n matrices by CLBlast on the device with this number; None without the library."""
    try:
        opencl, clblast = ctypes.CDLL("libOpenCL.so.1"), ctypes.CDLL("libclblast.so.1")
    except OSError:
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for function in (opencl.clCreateContext, opencl.clCreateCommandQueue, opencl.clCreateBuffer):
        function.restype = pointer
    platforms, devices, found = (pointer * 16)(), [], ctypes.c_uint32()
    opencl.clGetPlatformIDs(16, platforms, ctypes.byref(found))
    for platform in platforms[:found.value]:
        some, count = (pointer * 16)(), ctypes.c_uint32()
        if opencl.clGetDeviceIDs(pointer(platform), ctypes.c_uint64(0xFFFFFFFF), 16, some, ctypes.byref(count)) == 0:
            devices += some[:count.value]
    device = pointer(devices[number])
    context = pointer(opencl.clCreateContext(None, 1, ctypes.byref(device), None, None, None))
    queue = pointer(opencl.clCreateCommandQueue(context, device, ctypes.c_uint64(0), None))
    a, b, c = (pointer(opencl.clCreateBuffer(context, ctypes.c_uint64(1), size(4 * n * n), None, None)) for _ in range(3))
    least = float("inf")
    for _ in range(5):  # the first call compiles
        begin = time.monotonic()
        status = clblast.CLBlastSgemm(101, 111, 111, size(n), size(n), size(n), ctypes.c_float(1), a, size(0), size(n), b, size(0), size(n),
                                      ctypes.c_float(0), c, size(0), size(n), ctypes.byref(queue), None)
        assert status == 0, f"CLBlast: status {status}"
        opencl.clFinish(queue)
        least = min(least, time.monotonic() - begin)
    return 2 * n**3 / least


def compare_products(listed, name):
    """Prints the speed of products in the list of `artel devices` next to CLBlast's, at the same size."""
    line = next(line for line in listed.splitlines() if line.startswith(name + " "))
    own = float(re.search(r"([\d.e+]+) +[\d.e+]+ +passed", line).group(1)) * 1e9
    n = 512 if "Portable Computing Language" in line else 2048  # as in exec/opencl/self_test.cc
    other = clblast_speed(int(name.partition(":")[2]), n)
    if other:
        print(f"products of {n} x {n}: {own / 1e9:.1f} GFLOP/s, CLBlast {other / 1e9:.1f} GFLOP/s, ratio {own / other:.2f}", flush=True)


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
    listed = run("devices").strip()
    print(listed, flush=True)
    compare_products(listed, options.device)
    for name in options.models.split(","):
        case = CASES[name]
        sides = {"cpu": [], options.device: []}
        for _ in range(options.rounds):
            for device, rows in sides.items():
                rows.append(step_of(case, device, options))
        cpu, there = (statistics.median(row["seconds"] for row in rows) for rows in sides.values())
        last = sides[options.device][-1]
        in_kernels, in_products = shares(case, options.device, options)
        row = {"model": name, "batch": case[3], "cpu_ms": 1e3 * cpu, "device_ms": 1e3 * there, "ratio": cpu / there,
               "in_kernels": in_kernels, "in_products": in_products, "bytes_up": last["bytes_to_device_per_step"],
               "bytes_down": last["bytes_from_device_per_step"]}
        print(json.dumps(row) if options.json else
              f"{name:10} batch {case[3]:3}: cpu {row['cpu_ms']:8.2f} ms, {options.device} {row['device_ms']:8.2f} ms, speed {row['ratio']:.2f} x; "
              f"{100 * row['in_kernels']:.0f} % in kernels, {100 * row['in_products']:.0f} % in products; {row['bytes_up'] / 2**20:.2f} MiB up, {row['bytes_down'] / 2**20:.2f} MiB down", flush=True)
    tiny = [step_of(TINY, device, options)["seconds"] for device in ("cpu", options.device)]
    print(f"a step of a tiny network: cpu {1e3 * tiny[0]:.3f} ms, {options.device} {1e3 * tiny[1]:.3f} ms")
    start_seconds(options.device)
    starts = [statistics.median(start_seconds(device) for _ in range(options.rounds)) for device in ("cpu", options.device)]
    print(f"a start with one step: cpu {starts[0]:.2f} s, {options.device} {starts[1]:.2f} s")


if __name__ == "__main__":
    main()
