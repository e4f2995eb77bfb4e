#!/usr/bin/python3
"""`bench/run transfer inference`: features of JPEG pictures by ResNet-50 and MobileNetV2 at 224 x 224, decoding included: Artel compared with
PyTorch as it comes and ONNX Runtime (both the newest), in turns. Needs a build with ARTEL_BENCH=ON and Python's packages of
bench/peers/inference.txt, which it installs into a virtual environment. Run it on an idle machine."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEERS = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "artel/peers-inference")
MAKE_PICTURES = """
import sys, numpy
from PIL import Image
random = numpy.random.default_rng(0)
for i in range(64):
    small = random.integers(0, 256, (24, 32, 3), dtype=numpy.uint8)
    Image.fromarray(small).resize((640, 480), Image.BICUBIC).save(f"{sys.argv[1]}/{i:03d}.jpg", quality=90)
"""


def set_up_peers():
    python = os.path.join(PEERS, "bin/python")
    listed = os.path.join(ROOT, "bench/peers/inference.txt")
    done = os.path.join(PEERS, "installed.txt")
    if not (os.path.exists(done) and open(done).read() == open(listed).read()):
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        subprocess.run([os.path.join(PEERS, "bin/pip"), "install", "--quiet", "--requirement", listed], check=True)
        with open(done, "w") as file:
            file.write(open(listed).read())
    return python


def speed(command):
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", default=os.path.join(ROOT, "build/release/artel_bench_inference"))
    parser.add_argument("--networks", default="resnet50,mobilenet_v2")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=8, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="of JPEG pictures (default: 64 made ones of 640 x 480)")
    arguments = parser.parse_args()
    python = set_up_peers()
    script = os.path.join(ROOT, "bench/peers/pytorch_inference.py")
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or made
        if not arguments.folder:
            subprocess.run([python, "-c", MAKE_PICTURES, made], check=True)
        print(f"{'network':14} {'threads':>7} {'artel':>9} {'PyTorch':>9} {'ONNX Runtime':>12} {'vs. the faster':>18}")
        for name in arguments.networks.split(","):
            for threads in arguments.threads.split(","):
                tail = [name, folder, threads, str(arguments.seconds)]
                sides = {"artel": [arguments.ours, *tail], "eager": [python, script, "eager", *tail],
                         "onnx": [python, script, "onnx", *tail]}
                speeds = {side: [] for side in sides}
                for _ in range(arguments.rounds):
                    for side, command in sides.items():
                        speeds[side].append(speed(command))
                middle = {side: statistics.median(values) for side, values in speeds.items()}
                ratio = statistics.median(ours / max(eager, onnx) for ours, eager, onnx in zip(*speeds.values()))
                print(f"{name:14} {threads:>7} {middle['artel']:9.1f} {middle['eager']:9.1f} {middle['onnx']:12.1f} {ratio:18.2f}",
                      flush=True)


if __name__ == "__main__":
    main()
