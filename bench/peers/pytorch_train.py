#!/usr/bin/python3
"""PyTorch's side of `bench/run train`: trains one model on one fixed random batch.

A line "go SECONDS" on standard input runs training steps for about that long, at least one, and is answered by one
JSON line; the end of the input ends the program. The caller chooses the BLAS build through LD_LIBRARY_PATH.
"""
import argparse
import json
import os
import resource
import sys
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=("mlp", "lenet5", "vgg11_bn", "resnet18"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--channels-last", action="store_true")
    return parser.parse_args()


arguments = parse_arguments()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read when torch is loaded
    os.environ[variable] = str(arguments.threads)

import torch  # noqa: E402
from torch import nn  # noqa: E402


def mlp():
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def vgg11_bn():
    layers, channels = [], 3
    for width in (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool"):
        if width == "pool":
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10))


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))
        self.shortcut = nn.Identity()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return nn.functional.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet18():
    layers, channels = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)], 64
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(channels, width, stride))
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


MODELS = {  # the model, the batch size, the shape of one sample
    "mlp": (mlp, 128, (784,)),
    "lenet5": (lenet5, 64, (1, 28, 28)),
    "vgg11_bn": (vgg11_bn, 64, (3, 32, 32)),
    "resnet18": (resnet18, 64, (3, 32, 32)),
}


def blas_library():
    """The file that the BLAS calls really go to."""
    with open("/proc/self/maps") as maps:
        return next((line.split()[-1] for line in maps if "blas" in line), "none")


def main():
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    make, batch, shape = MODELS[arguments.model]
    model, x, y = make(), torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
    if arguments.channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    for line in sys.stdin:
        command, seconds = line.split()
        if command != "go":
            sys.exit(f"pytorch_train: got '{line.strip()}', expected 'go SECONDS'")
        begin, steps, elapsed = time.perf_counter(), 0, 0.0
        while steps == 0 or elapsed < float(seconds):
            step()
            steps += 1
            elapsed = time.perf_counter() - begin
        print(json.dumps({
            "model": arguments.model, "batch": batch, "threads": arguments.threads,
            "samples_per_second": steps * batch / elapsed,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "version": torch.__version__, "blas": blas_library(),
        }), flush=True)


if __name__ == "__main__":
    main()
