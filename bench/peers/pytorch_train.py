#!/usr/bin/python3
"""PyTorch's side of `bench/run train`, `bench/run transformers` and `bench/run recurrent`: trains one model on one fixed random batch.

A line "go SECONDS" on standard input runs training steps for about that long, at least one, and is answered by one
JSON line; the end of the input ends the program.
"""
import argparse
import json
import os
import resource
import sys
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=("mlp", "lenet5", "vgg11_bn", "resnet18", "resnet20", "resnet50", "gpt", "gpt_2048",
                                          "gpt2", "vit", "lstm", "gru", "resnet18_all", "resnet18_end",
                                          "resnet18_head"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--channels-last", action="store_true", help="the faster memory format for many images")
    parser.add_argument("--compile", action="store_true", help="compile forward, loss, and backward with torch.compile")
    return parser.parse_args()


arguments = parse_arguments()
os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # read when torch is loaded

import torch  # noqa: E402
from torch import nn  # noqa: E402

from pytorch_models import MODELS  # noqa: E402
from pytorch_transformers import TRANSFORMERS  # noqa: E402


def problem(name):
    """The model, a batch of inputs and their targets, the optimizer."""
    if name in TRANSFORMERS:
        return TRANSFORMERS[name]()
    make, batch, shape = MODELS[name]
    model = make()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, 0.01, momentum=0.9)
    return model, torch.randn(batch, *shape), torch.randint(0, 10, (batch,)), optimizer


def main():
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model, x, y, optimizer = problem(arguments.model)
    batch = x.shape[0]
    if arguments.channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)

    def loss_of(x, y):
        return nn.functional.cross_entropy(model(x), y)

    if arguments.compile:
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(x, y).backward()
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
            "version": torch.__version__,
        }), flush=True)


if __name__ == "__main__":
    main()
