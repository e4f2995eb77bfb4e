#!/usr/bin/python3
"""JAX's side of `bench/run train` and `bench/run transformers`: trains one model on one fixed random batch.

Speaks the protocol of pytorch_train.py. A step is one compiled function whose state is updated in place (donated buffers).
Images have their channels last. The number of threads is that of the processors on which the process may run.
"""
import argparse
import json
import os
import resource
import sys
import time

MODELS = ("mlp", "lenet5", "vgg11_bn", "resnet18", "resnet20", "gpt", "vit")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


arguments = parse_arguments()
if hasattr(os, "sched_setaffinity"):  # read when JAX starts its pool of threads
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:arguments.threads])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax import lax  # noqa: E402

random = numpy.random.default_rng(0)


def dense(inputs, outputs):
    bound = inputs ** -0.5
    return {"w": random.uniform(-bound, bound, (inputs, outputs)).astype("f"),
            "b": random.uniform(-bound, bound, outputs).astype("f")}


def apply_dense(p, x):
    return x @ p["w"] + p["b"]


def filters(side, inputs, outputs, bias=False):
    bound = (side * side * inputs) ** -0.5
    p = {"w": random.uniform(-bound, bound, (side, side, inputs, outputs)).astype("f")}
    return {**p, "b": numpy.zeros(outputs, "f")} if bias else p


def conv(p, x, stride=1, padding=1):
    y = lax.conv_general_dilated(x, p["w"], (stride, stride), [(padding, padding)] * 2,
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p["b"] if "b" in p else y


def norm(channels):
    return {"gamma": numpy.ones(channels, "f"), "beta": numpy.zeros(channels, "f")}


def batch_norm(p, x):
    """With the statistics of the batch; returns them for the running ones."""
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["gamma"] + p["beta"], (mean, variance)


def layer_norm(p, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["gamma"] + p["beta"]


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def mlp():
    parameters = [dense(784, 1024), dense(1024, 1024), dense(1024, 10)]

    def forward(p, x):
        for each in p[:-1]:
            x = jax.nn.relu(apply_dense(each, x))
        return apply_dense(p[-1], x), []
    return parameters, forward


def lenet5():
    parameters = [filters(5, 1, 6, True), filters(5, 6, 16, True), dense(400, 120), dense(120, 84), dense(84, 10)]

    def forward(p, x):
        x = max_pool(jax.nn.relu(conv(p[0], x, padding=2)))
        x = max_pool(jax.nn.relu(conv(p[1], x, padding=0)))
        x = x.reshape(x.shape[0], -1)
        for each in p[2:4]:
            x = jax.nn.relu(apply_dense(each, x))
        return apply_dense(p[4], x), []
    return parameters, forward


def vgg11_bn():
    plan, channels, layers = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0), 3, []
    for width in filter(None, plan):
        layers.append((filters(3, channels, width), norm(width)))
        channels = width

    def forward(p, x):
        layer, seen = iter(p["layers"]), []
        for width in plan:
            if width == 0:
                x = max_pool(x)
                continue
            weights, scale = next(layer)
            x, statistics = batch_norm(scale, conv(weights, x))
            x = jax.nn.relu(x)
            seen.append(statistics)
        return apply_dense(p["head"], x.reshape(x.shape[0], -1)), seen
    return {"layers": layers, "head": dense(512, 10)}, forward


def resnet(stages, blocks, projects):
    """The networks of pytorch_models.py: a shortcut with another shape is projected, or padded with zeros."""
    strides, channels, layers = [], stages[0], []
    for width in stages:
        for block in range(blocks):
            stride = 2 if block == 0 and width != stages[0] else 1
            layer = {"conv1": filters(3, channels, width), "norm1": norm(width),
                     "conv2": filters(3, width, width), "norm2": norm(width)}
            if stride == 2 and projects:
                layer.update(shortcut=filters(1, channels, width), norm3=norm(width))
            layers.append(layer)
            strides.append(stride)
            channels = width

    def forward(p, x):
        seen = []

        def normalised(scale, x):
            y, statistics = batch_norm(scale, x)
            seen.append(statistics)
            return y

        x = jax.nn.relu(normalised(p["norm"], conv(p["stem"], x)))
        for layer, stride in zip(p["layers"], strides):
            y = jax.nn.relu(normalised(layer["norm1"], conv(layer["conv1"], x, stride)))
            y = normalised(layer["norm2"], conv(layer["conv2"], y))
            if "shortcut" in layer:
                x = normalised(layer["norm3"], conv(layer["shortcut"], x, stride, 0))
            elif stride == 2:
                added = x.shape[3] // 2
                x = jnp.pad(x[:, ::2, ::2], ((0, 0), (0, 0), (0, 0), (added, added)))
            x = jax.nn.relu(x + y)
        return apply_dense(p["head"], x.mean((1, 2))), seen
    return {"stem": filters(3, 3, stages[0]), "norm": norm(stages[0]), "layers": layers,
            "head": dense(stages[-1], 10)}, forward


def block(width):
    return {"norm1": norm(width), "qkv": dense(width, 3 * width), "out": dense(width, width), "norm2": norm(width),
            "fc1": dense(width, 4 * width), "fc2": dense(4 * width, width)}


def apply_block(p, x, heads, causal):
    batch, positions, width = x.shape
    q, k, v = jnp.split(apply_dense(p["qkv"], layer_norm(p["norm1"], x)), 3, -1)
    split = [each.reshape(batch, positions, heads, width // heads) for each in (q, k, v)]
    y = jax.nn.dot_product_attention(*split, is_causal=causal).reshape(batch, positions, width)
    x = x + apply_dense(p["out"], y)
    hidden = jax.nn.gelu(apply_dense(p["fc1"], layer_norm(p["norm2"], x)), approximate=causal)
    return x + apply_dense(p["fc2"], hidden)


def gpt(positions=256, width=384, depth=6, heads=6, vocabulary=65):
    parameters = {"tokens": random.standard_normal((vocabulary, width)).astype("f") * 0.02,
                  "positions": random.standard_normal((positions, width)).astype("f") * 0.02,
                  "blocks": [block(width) for _ in range(depth)], "norm": norm(width)}

    def forward(p, tokens):
        x = p["tokens"][tokens] + p["positions"][:tokens.shape[1]]
        for each in p["blocks"]:
            x = apply_block(each, x, heads, True)
        return (layer_norm(p["norm"], x) @ p["tokens"].T).reshape(-1, vocabulary), []
    return parameters, forward


def vit(side=32, patch=4, width=192, depth=12, heads=3, classes=10):
    count = (side // patch) ** 2
    parameters = {"patches": filters(patch, 3, width, True), "token": numpy.zeros((1, 1, width), "f"),
                  "positions": random.standard_normal((count + 1, width)).astype("f") * 0.02,
                  "blocks": [block(width) for _ in range(depth)], "norm": norm(width), "head": dense(width, classes)}

    def forward(p, images):
        x = conv(p["patches"], images, patch, 0).reshape(images.shape[0], count, width)
        x = jnp.concatenate([jnp.broadcast_to(p["token"], (x.shape[0], 1, width)), x], 1) + p["positions"]
        for each in p["blocks"]:
            x = apply_block(each, x, heads, False)
        return apply_dense(p["head"], layer_norm(p["norm"], x)[:, 0]), []
    return parameters, forward


NETWORKS = {  # the model, the batch size, the shape of one sample
    "mlp": (mlp, 128, (784,)),
    "lenet5": (lenet5, 64, (28, 28, 1)),
    "vgg11_bn": (vgg11_bn, 64, (32, 32, 3)),
    "resnet18": (lambda: resnet((64, 128, 256, 512), 2, True), 64, (32, 32, 3)),
    "resnet20": (lambda: resnet((16, 32, 64), 3, False), 128, (32, 32, 3)),
    "gpt": (gpt, 8, (256,)),
    "vit": (vit, 64, (32, 32, 3)),
}


def momentum_update(parameters, gradients, memory):
    memory = jax.tree.map(lambda m, g: 0.9 * m + g, memory, gradients)
    return jax.tree.map(lambda p, m: p - 0.01 * m, parameters, memory), memory


def adamw_update(parameters, gradients, memory):
    count, first, second = memory
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

    def updated(p, m, v):
        step = m / (1 - 0.9 ** count) / (jnp.sqrt(v / (1 - 0.999 ** count)) + 1e-8)
        return p - 3e-4 * (step + 0.01 * p)
    return jax.tree.map(updated, parameters, first, second), (count, first, second)


def main():
    make, batch, shape = NETWORKS[arguments.model]
    parameters, forward = make()
    parameters = jax.tree.map(jnp.asarray, parameters)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    if arguments.model == "gpt":
        x = jnp.asarray(random.integers(0, 65, (batch, *shape), dtype=numpy.int32))
        y, update, memory = x.reshape(-1), adamw_update, (jnp.float32(0), zeros, jax.tree.map(jnp.zeros_like, zeros))
    else:
        x = jnp.asarray(random.standard_normal((batch, *shape)).astype("f"))
        y, update, memory = jnp.asarray(random.integers(0, 10, batch, dtype=numpy.int32)), momentum_update, zeros

    def loss_of(parameters, x, y):
        logits, seen = forward(parameters, x)
        rows = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(rows, y[:, None], 1).mean(), seen

    running = [(jnp.zeros(mean.shape), jnp.ones(variance.shape))
               for mean, variance in jax.eval_shape(loss_of, parameters, x, y)[1]]

    def train(state, x, y):
        parameters, memory, running = state
        gradients, seen = jax.grad(loss_of, has_aux=True)(parameters, x, y)
        parameters, memory = update(parameters, gradients, memory)
        return parameters, memory, jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, running, seen)

    step = jax.jit(train, donate_argnums=0)
    state = (parameters, memory, running)
    for line in sys.stdin:
        command, seconds = line.split()
        if command != "go":
            sys.exit(f"jax_train: got '{line.strip()}', expected 'go SECONDS'")
        begin, steps, elapsed = time.perf_counter(), 0, 0.0
        while steps == 0 or elapsed < float(seconds):
            state = jax.block_until_ready(step(state, x, y))
            steps += 1
            elapsed = time.perf_counter() - begin
        print(json.dumps({
            "model": arguments.model, "batch": batch, "threads": arguments.threads,
            "samples_per_second": steps * batch / elapsed,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "version": jax.__version__,
        }), flush=True)


if __name__ == "__main__":
    main()
