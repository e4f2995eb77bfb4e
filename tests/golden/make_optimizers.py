#!/usr/bin/python3
"""Writes optimizers.json and schedules.json beside this file: what PyTorch's optimizers and learning-rate
schedulers do in 50 steps. LARS and LAMB, which PyTorch lacks, are written here in numpy from their papers.
Needs python3-torch."""
import json
import math
import os

import numpy as np
import torch

STEPS = 50
KEPT = (1, 2, 10, 50)  # the steps after which parameters are recorded
MATRIX, BIAS = 19, 5  # elements: neither fills whole vectors


def decaying(optimizer, lr, weight_decay=0.0, **options):
    """A torch optimizer that spares the bias from weight decay."""
    return lambda matrix, bias: optimizer(
        [{"params": [matrix], "weight_decay": weight_decay}, {"params": [bias], "weight_decay": 0.0}],
        lr=lr, **options)


class Reference:
    """Base of the rules that PyTorch lacks: calls `rule` for each parameter, in float64."""

    def __init__(self, matrix, bias):
        self.parameters = [(matrix, True), (bias, False)]
        self.state = [[np.zeros(len(p)), np.zeros(len(p))] for p, _ in self.parameters]
        self.time = 0

    def step(self):
        self.time += 1
        for (parameter, adapt), state in zip(self.parameters, self.state):
            p = parameter.detach().numpy().astype(np.float64)
            g = parameter.grad.numpy().astype(np.float64)
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(self.rule(p, g, state, adapt)))


class Lars(Reference):
    """You, Gitman, Ginsburg: Large batch training of convolutional networks (2017), algorithm 1."""
    lr, momentum, trust, decay, epsilon = 0.5, 0.9, 0.02, 1e-3, 1e-9

    def rule(self, p, g, state, adapt):
        ratio, decay = 1.0, 0.0
        if adapt:
            decay = self.decay
            size = np.linalg.norm(p)
            ratio = self.trust * size / (np.linalg.norm(g) + decay * size + self.epsilon)
        state[0] = self.momentum * state[0] + self.lr * ratio * (g + decay * p)
        return p - state[0]


class Lamb(Reference):
    """You et al.: Large batch optimization for deep learning (2020), algorithm 2."""
    lr, beta1, beta2, decay, epsilon = 0.01, 0.9, 0.999, 0.01, 1e-6

    def rule(self, p, g, state, adapt):
        m = state[0] = self.beta1 * state[0] + (1 - self.beta1) * g
        v = state[1] = self.beta2 * state[1] + (1 - self.beta2) * g * g
        direction = (m / (1 - self.beta1**self.time)) / (
            np.sqrt(v / (1 - self.beta2**self.time)) + self.epsilon)
        ratio = 1.0
        if adapt:
            direction = direction + self.decay * p
            ratio = np.linalg.norm(p) / np.linalg.norm(direction)
        return p - self.lr * ratio * direction


def optimizer_cases():
    optim = torch.optim
    plain = {"lr": "0.1"}
    return [
        (dict(plain, name="sgd"), decaying(optim.SGD, 0.1)),
        (dict(plain, name="sgd", weight_decay="0.01"), decaying(optim.SGD, 0.1, 0.01)),
        (dict(plain, name="momentum", weight_decay="1e-3"),
         decaying(optim.SGD, 0.1, 1e-3, momentum=0.9)),
        (dict(plain, name="sgd", momentum="0.8", dampening="0.3"),
         decaying(optim.SGD, 0.1, momentum=0.8, dampening=0.3)),
        (dict(plain, name="nesterov", weight_decay="1e-3"),
         decaying(optim.SGD, 0.1, 1e-3, momentum=0.9, nesterov=True)),
        (dict(plain, name="adagrad", weight_decay="0.01"), decaying(optim.Adagrad, 0.1, 0.01)),
        ({"name": "rmsprop", "lr": "0.01", "weight_decay": "0.01"},
         decaying(optim.RMSprop, 0.01, 0.01)),
        ({"name": "rmsprop", "lr": "0.01", "momentum": "0.9", "smoothing": "0.9"},
         decaying(optim.RMSprop, 0.01, momentum=0.9, alpha=0.9)),
        ({"name": "rmsprop", "lr": "0.01", "centered": "true"},
         decaying(optim.RMSprop, 0.01, centered=True)),
        ({"name": "rmsprop", "lr": "0.01", "centered": "true", "momentum": "0.5"},
         decaying(optim.RMSprop, 0.01, centered=True, momentum=0.5)),
        ({"name": "adam", "lr": "0.01"}, decaying(optim.Adam, 0.01)),
        ({"name": "adam", "lr": "0.01", "beta1": "0.8", "beta2": "0.95", "weight_decay": "0.1"},
         decaying(optim.Adam, 0.01, 0.1, betas=(0.8, 0.95))),
        ({"name": "adamw", "lr": "0.01", "weight_decay": "0.1"},
         decaying(optim.AdamW, 0.01, 0.1)),
        ({"name": "lars", "lr": "0.5", "trust": "0.02", "weight_decay": "1e-3"}, Lars),
        ({"name": "lamb", "lr": "0.01"}, Lamb),
    ]


def rounded(values):
    return [float(f"{value:.9g}") for value in values]


def make_optimizers():
    random = np.random.default_rng(0)
    initial = random.normal(size=MATRIX + BIAS).astype(np.float32)
    # Around a drifting mean, to give moments and momentum something to follow.
    gradients = (random.normal(size=(STEPS, MATRIX + BIAS)) +
                 np.sin(np.arange(STEPS) / 7)[:, None]).astype(np.float32)
    cases = []
    for clip_value, clip_norm in ((0.0, 0.0), (0.7, 0.0), (0.0, 2.0)):
        for options, make in optimizer_cases():
            if clip_value or clip_norm:
                if options["name"] not in ("momentum", "adam", "lamb") or "beta1" in options:
                    continue
                options = dict(options, clip_value=str(clip_value), clip_norm=str(clip_norm))
            matrix, bias = (torch.nn.Parameter(torch.from_numpy(part.copy()))
                            for part in np.split(initial, [MATRIX]))
            optimizer = make(matrix, bias)
            recorded = {}
            for step in range(1, STEPS + 1):
                matrix.grad, bias.grad = (torch.from_numpy(part.copy())
                                          for part in np.split(gradients[step - 1], [MATRIX]))
                if clip_value:
                    torch.nn.utils.clip_grad_value_([matrix, bias], clip_value)
                if clip_norm:
                    torch.nn.utils.clip_grad_norm_([matrix, bias], clip_norm)
                optimizer.step()
                if step in KEPT:
                    recorded[str(step)] = rounded(torch.cat([matrix, bias]).tolist())
            cases.append({"options": options, "parameters": recorded})
    return {"matrix": MATRIX, "initial": rounded(initial.tolist()),
            "gradients": [rounded(row.tolist()) for row in gradients], "cases": cases}


def rates(make, epoch_length=1, lr=0.1):
    """The rate of each of 50 steps; the scheduler itself steps once in `epoch_length` of them."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler = make(optimizer)
    result = []
    for step in range(1, STEPS + 1):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step % epoch_length == 0 and step < STEPS:
            scheduler.step()
    return rounded(result)


def make_schedules():
    lrs = torch.optim.lr_scheduler
    by_step = {"unit": "step"}

    def warm(make_rest, length):
        return lambda o: lrs.SequentialLR(
            o, [lrs.LinearLR(o, start_factor=0.2, total_iters=length), make_rest(o)], [length])

    def schedule(name, expected, steps_per_epoch=1, **options):
        return {"options": dict(options, name=name), "steps_per_epoch": steps_per_epoch,
                "rates": expected}

    cases = [
        schedule("constant", rates(lambda o: lrs.LambdaLR(o, lambda step: 1.0))),
        schedule("step", rates(lambda o: lrs.StepLR(o, 12, 0.5)), every="12", factor="0.5", **by_step),
        schedule("step", rates(lambda o: lrs.StepLR(o, 3, 0.3), 5), 5, every="3", factor="0.3"),
        schedule("multi_step", rates(lambda o: lrs.MultiStepLR(o, [4, 7], 0.1), 5), 5,
                 milestones="[4, 7]"),
        schedule("cosine", rates(lambda o: lrs.CosineAnnealingLR(o, STEPS, 0.001)),
                 final_fraction="0.01"),
        schedule("polynomial", rates(lambda o: lrs.PolynomialLR(o, STEPS, 0.9)), power="0.9"),
        schedule("one_cycle", rates(lambda o: lrs.OneCycleLR(o, 0.1, STEPS))),
        schedule("one_cycle",
                 rates(lambda o: lrs.OneCycleLR(o, 0.1, STEPS, pct_start=0.4, div_factor=10,
                                                final_div_factor=100)),
                 rise="0.4", initial_divisor="10", final_divisor="100"),
        schedule("constant", rates(lambda o: lrs.LinearLR(o, start_factor=0.2, total_iters=8)),
                 warmup="8", warmup_start="0.2", **by_step),
        schedule("cosine", rates(warm(lambda o: lrs.CosineAnnealingLR(o, STEPS - 10), 10)), 5,
                 warmup="2", warmup_start="0.2"),
    ]

    metrics = [float(f"{2 * math.exp(-i / 6) + 0.05 * math.sin(3 * i):.6g}") for i in range(STEPS)]
    plateaus = []
    for maximize in (False, True):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        scheduler = lrs.ReduceLROnPlateau(optimizer, "max" if maximize else "min", factor=0.5,
                                          patience=2, threshold=0.01, cooldown=1, min_lr=0.1)
        factors = []
        for metric in metrics:
            scheduler.step(-metric + 3 if maximize else metric)
            factors.append(optimizer.param_groups[0]["lr"])
        plateaus.append({"options": {"name": "plateau", "factor": "0.5", "patience": "2",
                                     "threshold": "0.01", "cooldown": "1", "floor": "0.1",
                                     "maximize": "true" if maximize else "false"},
                         "metrics": rounded(-m + 3 if maximize else m for m in metrics),
                         "factors": rounded(factors)})
    return {"learning_rate": 0.1, "cases": cases, "plateaus": plateaus}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    for name, content in (("optimizers", make_optimizers()), ("schedules", make_schedules())):
        with open(os.path.join(here, name + ".json"), "w") as file:
            json.dump(content, file, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    main()
