"""What pruning and distillation bring to residual networks, on pictures of CIFAR-10's size.

prune:  images per second and accuracy of ResNet-56, of the same with half of its inner channels, and after fine-tuning.
distil: accuracy of ResNet-20 trained alone and with ResNet-56 as its teacher, for several seeds.

The pictures are drawn here: noisy, shifted mixtures of ten patterns. With --set data.set=cifar10 after `artel data get cifar10`,
they are those of CIFAR-10."""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = """[data]
set = "npz"
path = "{data}"
test_fraction = 0.2
[model]
name = "{network}"
[train]
batch_size = 64
epochs = {epochs}
seed = {seed}
optimizer = {{ name = "sgd", lr = 0.1, momentum = 0.9, weight_decay = 5e-4 }}
schedule = {{ name = "one_cycle" }}
"""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench/run shrink: {' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def draw(path, samples, noise):
    random = numpy.random.default_rng(1)
    patterns = random.normal(size=(10, 3, 32, 32)).astype(numpy.float32)
    for axis in (2, 3):  # smooth
        patterns = sum(numpy.roll(patterns, shift, axis) for shift in range(-3, 4)) / 7
    patterns /= patterns.std()
    labels = random.integers(0, 10, samples)
    pictures = numpy.empty((samples, 3, 32, 32), numpy.float32)
    for i, label in enumerate(labels):
        shift = random.integers(-6, 7, 2)
        pictures[i] = numpy.roll(patterns[label], shift, (1, 2)) + 0.7 * patterns[random.integers(0, 10)]
    pictures += noise * random.normal(size=pictures.shape).astype(numpy.float32)
    numpy.savez(path, x=pictures, y=labels.astype(numpy.int32))


def configuration(arguments, folder, network, seed=0):
    path = os.path.join(folder, f"{network}-{seed}.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(data=os.path.join(folder, "pictures.npz"), network=network, epochs=arguments.epochs, seed=seed))
    return path


def overrides(arguments):
    return [word for text in arguments.set for word in ("--set", text)]


def accuracy(arguments, folder):
    return 100 * float(re.search(r"accuracy[^0-9]*([0-9.]+)", run([arguments.artel, "evaluate", folder])).group(1))


# Starting the program and reading the data included.
def seconds(arguments, folder):
    begin = time.perf_counter()
    run([arguments.artel, "evaluate", folder, "--on", "train"])
    return time.perf_counter() - begin


def prune(arguments, folder):
    full, half = os.path.join(folder, "full"), os.path.join(folder, "half")
    run([arguments.artel, "train", configuration(arguments, folder, arguments.teacher), "--out", full, *overrides(arguments)])
    text = run([arguments.artel, "prune", full, "--channels", "50%", "--finetune", str(arguments.finetune), "-o", half])
    times = {full: [], half: []}
    for _ in range(arguments.rounds):
        for each in times:
            times[each].append(seconds(arguments, each))
    print("\n".join(line for line in text.splitlines() if line.startswith(("parameters", "before", "pruned", "fine-tuned", "lost"))))
    ratio = statistics.median(a / b for a, b in zip(times[full], times[half]))
    print(f"evaluation of the training part: {statistics.median(times[full]):.2f} s before, {statistics.median(times[half]):.2f} s after,"
          f" {ratio:.2f}x (at least 1.7x)")


def distil(arguments, folder):
    teacher = os.path.join(folder, "teacher")
    run([arguments.artel, "train", configuration(arguments, folder, arguments.teacher), "--out", teacher, *overrides(arguments)])
    print(f"teacher {arguments.teacher}: {accuracy(arguments, teacher):.2f} %", flush=True)
    gains = []
    for seed in range(arguments.seeds):
        student = configuration(arguments, folder, arguments.student, seed)
        alone, taught = os.path.join(folder, f"alone{seed}"), os.path.join(folder, f"taught{seed}")
        run([arguments.artel, "train", student, "--out", alone, *overrides(arguments)])
        run([arguments.artel, "distil", teacher, student, "--out", taught, *overrides(arguments)])
        before, after = accuracy(arguments, alone), accuracy(arguments, taught)
        gains.append(after - before)
        print(f"{arguments.student}, seed {seed}: alone {before:.2f} %, with teacher {after:.2f} %", flush=True)
    print(f"gain: {statistics.mean(gains):+.2f} points (at least +0.5)")


def main():
    parser = argparse.ArgumentParser(prog="bench/run shrink", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subject", choices=("prune", "distil"))
    parser.add_argument("--teacher", default="resnet56", help="the large network, default: %(default)s")
    parser.add_argument("--student", default="resnet20", help="default: %(default)s")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--finetune", type=int, default=3, help="epochs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--noise", type=float, default=1.5)
    parser.add_argument("--set", action="append", default=[], help="a key of the configuration")
    parser.add_argument("--artel", default=os.path.join(HERE, "../../build/release/artel"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        draw(os.path.join(folder, "pictures.npz"), arguments.samples, arguments.noise)
        (prune if arguments.subject == "prune" else distil)(arguments, folder)


if __name__ == "__main__":
    main()
