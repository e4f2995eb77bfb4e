#!/usr/bin/python3
"""PyTorch's side of `bench/run faults --torchrun`: a worker that torchrun starts, and starts again after a failure.

It trains an MLP by DistributedDataParallel with Gloo, continues from the last checkpoint, and saves every --save-every steps. Worker 0
appends a line to the file `steps` in the folder for each finished step: its number and the time.
"""
import argparse
import os
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("folder", type=Path)
parser.add_argument("--save-every", type=int, default=100)
arguments = parser.parse_args()
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")

import torch  # noqa: E402
from torch import distributed, nn  # noqa: E402

from pytorch_models import MODELS  # noqa: E402


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    make, batch, shape = MODELS["mlp"]
    batch //= distributed.get_world_size()
    network = make()
    optimizer = torch.optim.Adam(network.parameters(), 0.001)
    step, saved = 0, arguments.folder / "checkpoint.pt"
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    model = nn.parallel.DistributedDataParallel(network)
    x, y = torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
    with open(arguments.folder / "steps", "a", buffering=1) as steps:
        while True:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            step += 1
            if rank == 0:
                steps.write(f"{step} {time.time()}\n")
                if step % arguments.save_every == 0:
                    torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
                               f"{saved}.new")
                    os.replace(f"{saved}.new", saved)


main()
