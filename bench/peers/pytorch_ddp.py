#!/usr/bin/python3
"""PyTorch's side of `bench/run sync`: one worker of DistributedDataParallel with Gloo, on one fixed random batch.

Worker 0 prints one JSON line with the speed of all workers together.
"""
import argparse
import json
import os
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=("mlp", "vgg11_bn", "resnet18"))
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--address", default="127.0.0.1:29544", help="where worker 0 listens")
    parser.add_argument("--interface", default="lo")
    parser.add_argument("--seconds", type=float, default=5)
    return parser.parse_args()


arguments = parse_arguments()
host, port = arguments.address.split(":")
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MASTER_ADDR=host, MASTER_PORT=port,
                  GLOO_SOCKET_IFNAME=arguments.interface)

import torch  # noqa: E402
from torch import distributed, nn  # noqa: E402

from pytorch_models import MODELS  # noqa: E402


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("gloo", rank=arguments.rank, world_size=arguments.size)
    make, batch, shape = MODELS[arguments.model]
    model = nn.parallel.DistributedDataParallel(make())
    x, y = torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    for _ in range(2):
        step()
    distributed.barrier()
    begin, steps, go_on = time.perf_counter(), 0, torch.ones(1)
    while go_on.item():
        for _ in range(4):
            step()
        steps += 4
        elapsed = time.perf_counter() - begin
        go_on.fill_(elapsed < arguments.seconds)  # worker 0 decides for all
        distributed.broadcast(go_on, 0)
    if arguments.rank == 0:
        print(json.dumps({"samples_per_second": steps * batch * arguments.size / elapsed, "batch": batch,
                          "version": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
