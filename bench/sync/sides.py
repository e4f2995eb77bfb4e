"""The two sides of `bench/run sync`: runs of two workers by Artel, and by PyTorch's DistributedDataParallel."""
import gzip
import itertools
import json
import os
import shutil
import subprocess
import sys

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
WORKERS = 2
DEADLINE_SECONDS = 170
# Layers or name of the model, samples of a worker's step, shape of a sample, steps of a measurement.
MODELS = {
    "mlp": ('layers = ["flatten", "dense 1024", "relu", "dense 1024", "relu", "dense 10"]', 128, (28, 28), 200),
    "vgg11_bn": ('name = "vgg11_bn"\nsmall_images = true', 64, (32, 32, 3), 14),
    "resnet18": ('name = "resnet18"\nsmall_images = true', 64, (32, 32, 3), 8),
}


def finish(commands, environments=None):
    """Runs all at once and returns what the first prints."""
    environments = environments or [{}] * len(commands)
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, **environment})
               for command, environment in zip(commands, environments)]
    try:
        outputs = [process.communicate(timeout=DEADLINE_SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, command, (output, errors) in zip(started, commands, outputs):
        if process.returncode != 0:
            sys.exit(f"bench/sync: {' '.join(command)} failed with {process.returncode}:\n{output}{errors}")
    return outputs[0][0]


def random_samples(path, shape, count):
    if not os.path.exists(path):
        random = numpy.random.default_rng(1)
        numpy.savez(path, x=random.integers(0, 256, (count, *shape), dtype=numpy.uint8),
                    y=random.integers(0, 10, count, dtype=numpy.int32))


def clothes(path, shape, count):
    """The first images of Fashion-MNIST, with a border and equal colours where the shape needs them."""
    if os.path.exists(path):
        return
    with gzip.open(f"{FASHION_MNIST}/train-images-idx3-ubyte.gz") as images:
        x = numpy.frombuffer(images.read(), numpy.uint8, offset=16).reshape(-1, 28, 28)[:count]
    with gzip.open(f"{FASHION_MNIST}/train-labels-idx1-ubyte.gz") as labels:
        y = numpy.frombuffer(labels.read(), numpy.uint8, offset=8)[:count].astype(numpy.int32)
    border = (shape[0] - 28) // 2
    x = numpy.pad(x, ((0, 0), (border, border), (border, border)))
    numpy.savez(path, x=x if len(shape) == 2 else numpy.repeat(x[..., None], shape[2], axis=3), y=y)


class Ours:
    """Runs the program `artel`; its files go to `folder`."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.out = os.path.join(folder, "run")
        self.ports = itertools.count(29600)

    def speed(self, model, settings, *, hosts=None, slowed=None, batch=None, steps=None, first=None):
        """Samples per second of all workers, without the first steps (a quarter, unless given) and the last one."""
        _, usual_batch, _, usual_steps = MODELS[model]
        batch, steps = batch or usual_batch, steps or usual_steps
        first = first or steps // 4
        self._train_on_noise(model, batch, steps, settings, hosts, slowed)
        with open(os.path.join(self.out, "metrics.jsonl")) as file:
            seconds = {line["step"]: line["seconds"] for line in map(json.loads, file) if "train/loss" in line}
        return (steps - 1 - first) * batch * WORKERS / (seconds[steps - 1] - seconds[first])

    def speed_in_step(self, model, settings):
        """What `speed` would be if each step took as long as that of its slowest worker."""
        _, batch, _, steps = MODELS[model]
        trace = os.path.join(self.folder, "trace.json")
        self._train_on_noise(model, batch, steps, settings, options=["--trace", trace])
        begins = {}
        with open(trace) as file:
            for span in json.load(file)["traceEvents"]:
                if span["name"] == "forward and backward":
                    begins.setdefault(span["pid"], []).append(span["ts"] / 1e6)
        of_workers = [numpy.diff(sorted(times)[steps // 4:steps - 1]) for times in begins.values()]
        return batch * WORKERS / numpy.max(of_workers, axis=0).mean()

    def _train_on_noise(self, model, batch, steps, settings, hosts=None, slowed=None, options=()):
        # Enough samples that no epoch ends meanwhile.
        count = batch * WORKERS * (steps + 1) + 10
        data = os.path.join(self.folder, f"{model}-{count}.npz")
        random_samples(data, MODELS[model][2], count)
        settings = [f"train.steps={steps}", f"train.batch_size={batch * WORKERS}", *settings]
        self._train(model, data, 0, settings, hosts, slowed, options)

    def accuracy(self, model, settings, *, samples, epochs, hosts=None):
        """The test accuracy after some epochs on real images, a tenth of which are for testing."""
        data = os.path.join(self.folder, f"{model}-clothes.npz")
        clothes(data, MODELS[model][2], samples)
        self._train(model, data, 0.1, [f"train.epochs={epochs}", *settings], hosts, None)
        with open(os.path.join(self.out, "summary.json")) as file:
            return json.load(file)["test_accuracy"]

    def _train(self, model, data, test_fraction, settings, hosts, slowed, options=()):
        description, batch, _, _ = MODELS[model]
        config = os.path.join(self.folder, f"{model}.toml")
        with open(config, "w") as file:
            file.write(f"""
[data]
set = "npz"
path = "{data}"
test_fraction = {test_fraction}
[model]
{description}
[train]
batch_size = {batch * WORKERS}
optimizer = {{ name = "sgd", lr = 0.02, momentum = 0.9 }}
[cluster]
workers = {WORKERS}
threads = 1
""")
        shutil.rmtree(self.out, ignore_errors=True)
        command = [self.program, "train", config, "--out", self.out, *options]
        for setting in settings:
            command += ["--set", setting]
        if hosts:
            command += ["--join", f"{hosts.address}:{next(self.ports)}", "--token", "bench", "--interface", hosts.interface]
            finish([hosts.command(rank, [*command, "--rank", str(rank)]) for rank in range(WORKERS)])
            return
        # Acts like the launcher of `artel train -n`, except for the last worker's quota.
        place = {"ARTEL_SIZE": str(WORKERS), "ARTEL_ADDRESS": f"bench-{os.getpid()}-{next(self.ports)}", "ARTEL_TOKEN": "bench"}
        finish([command, slowed.command(command) if slowed else command],
               [{**place, "ARTEL_RANK": str(rank)} for rank in range(WORKERS)])


class Ddp:
    """Runs PyTorch for a number of seconds at a time; `name` is known after the first."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.ports = itertools.count(29800)
        self.name = "PyTorch DDP, Gloo"

    def speed(self, model, hosts=None):
        script = os.path.join(ROOT, "bench/peers/pytorch_ddp.py")
        address, interface = (hosts.address, hosts.interface) if hosts else ("127.0.0.1", "lo")
        place = ["--address", f"{address}:{next(self.ports)}", "--interface", interface, "--seconds", str(self.seconds)]
        commands = [["/usr/bin/python3", script, model, "--rank", str(rank), *place] for rank in range(WORKERS)]
        if hosts:
            commands = [hosts.command(rank, command) for rank, command in enumerate(commands)]
        answer = json.loads(finish(commands))
        self.name = f"PyTorch {answer['version']} DDP, Gloo"
        return answer["samples_per_second"]
