#!/usr/bin/env python3
"""How far do ten training steps of a ResNet-20 drift from the same steps in double precision?

For each seed (data and weights), the largest difference of the ten losses from PyTorch's in double precision:
  nudged   PyTorch in double, from weights changed by up to half a rounding of float (6e-8 of each)
  float    PyTorch in float
  masked   the same, but every ReLU lets through what it let through in double
  artel    Artel, one lane
  exact    Artel with exact_convolutions
With --activation silu, which has no kink, the column masked is empty.

Usage: bench/run rounding [--artel build/release/artel] [--activation relu] [--seeds 8]
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

BATCH, STEPS, RATE, MOMENTUM = 16, 10, 0.1, 0.9


class Activation(nn.Module):
    """ReLU or SiLU; a ReLU notes its masks in `noted`, or obeys those in `given`."""

    def __init__(self, name):
        super().__init__()
        self.name, self.noted, self.given = name, [], None

    def forward(self, x):
        if self.name == "silu":
            return F.silu(x)
        self.noted.append(x > 0)
        return x * (self.noted[-1] if self.given is None else self.given[len(self.noted) - 1])


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


def conv(before, channels, stride=1):
    return [nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)]


def resnet20(activation):
    """The network in PyTorch, and as text for Artel, with the same names of parameters."""
    modules = [*conv(3, 16), Activation(activation)]
    text = ["conv 16 3 padding 1 no_bias", "batch_norm", activation]
    before = 16
    for channels in (16, 16, 16, 32, 32, 32, 64, 64, 64):
        stride = channels // before
        first = f"conv {channels} 3 padding 1 stride {stride} no_bias | batch_norm"
        block = f"residual {{ {first} | {activation} | conv {channels} 3 padding 1 no_bias | batch_norm }}"
        text += [block + (f" shortcut {{ {first} }}" if stride > 1 else "") + " no_relu", activation]
        body = nn.Sequential(*conv(before, channels, stride), Activation(activation), *conv(channels, channels))
        shortcut = nn.Sequential(*conv(before, channels, stride)) if stride > 1 else None
        modules += [Residual(body, shortcut), Activation(activation)]
        before = channels
    modules += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*modules), text + ["adaptive_average_pool 1", "flatten", "dense 10"]


def train(activation, state, x, y, dtype, nudge=False, masks=None):
    """The ten losses, and the masks of each ReLU."""
    model, _ = resnet20(activation)
    model.load_state_dict(state)
    model.to(dtype)
    units = [m for m in model.modules() if isinstance(m, Activation)]
    for unit, mask in zip(units, masks or []):
        unit.given = mask
    if nudge:
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(1 + 6e-8 * (2 * torch.rand_like(p) - 1))
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=MOMENTUM)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.to(dtype)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), [unit.noted for unit in units]


def train_artel(program, folder, text, exact):
    """Reads data.npz and weights.npz in the folder; one batch is the whole set."""
    run = folder / f"run_{exact}"
    config = folder / "run.toml"
    config.write_text(f'[data]\nset = "npz"\npath = "{folder}/data.npz"\n'
                      f'[model]\nlayers = {json.dumps(text)}\nweights = "{folder}/weights.npz"\n'
                      f'[train]\nbatch_size = {BATCH}\nsteps = {STEPS}\nexact_convolutions = {str(exact).lower()}\n'
                      f'optimizer = {{ name = "sgd", lr = {RATE}, momentum = {MOMENTUM} }}\n[cluster]\nlanes = 1\n')
    subprocess.run([program, "train", config, "--out", run], check=True, capture_output=True)
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return np.array([row["train/loss"] for row in rows if "train/loss" in row])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--artel", default="build/release/artel")
    arguments.add_argument("--activation", choices=("relu", "silu"), default="relu")
    arguments.add_argument("--seeds", type=int, default=8)
    given = arguments.parse_args()
    columns = ("nudged", "float", "masked", "artel", "exact")
    print("seed ", *(f"{name:>8}" for name in columns))
    table = []
    for seed in range(given.seeds):
        torch.manual_seed(seed)
        model, text = resnet20(given.activation)
        state = {name: value.clone() for name, value in model.state_dict().items()}
        x, y = torch.randn(BATCH, 3, 32, 32), torch.randint(0, 10, (BATCH,))
        def run(dtype, **options):
            return train(given.activation, state, x, y, dtype, **options)
        truth, masks = run(torch.float64)
        curves = [run(torch.float64, nudge=True)[0], run(torch.float32)[0]]
        curves.append(run(torch.float32, masks=masks)[0] if given.activation == "relu" else None)
        with tempfile.TemporaryDirectory() as name:
            folder, arrays = pathlib.Path(name), {}
            for part in ("train", "test"):
                arrays |= {f"x_{part}": x.numpy(), f"y_{part}": y.numpy()}
            np.savez(folder / "data.npz", **arrays)
            np.savez(folder / "weights.npz", **{k: v.numpy() for k, v in state.items() if "num_batches" not in k})
            curves += [train_artel(given.artel, folder, text, exact) for exact in (False, True)]
        row = [np.nan if curve is None else abs(curve - truth).max() for curve in curves]
        table.append(row)
        print(f"{seed:<5}", *(f"{value:8.1e}" for value in row), flush=True)
    for name, take in (("least", np.min), ("middle", np.median), ("most", np.max)):
        print(f"{name:<6}", *(f"{value:8.1e}" for value in take(table, 0)))


if __name__ == "__main__":
    main()
