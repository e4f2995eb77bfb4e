"""Training speed and peak memory of Artel compared with the fastest of its newest peers, measured in turns on one machine:
common parts of `bench/run train`, `bench/run transformers`, `bench/run recurrent`, and `bench/run transfer finetune`.

Each side is a process that is started once and told to train for a moment at a time, A, B, A, B, so that drifts of the
machine affect both; medians of the rounds are compared. The peers of bench/peers/newest.txt (`tools/setup newest`) are
PyTorch, eager or with torch.compile, for images in both memory formats, and JAX. A short trial selects the variants that
take part in all rounds. Run it on an idle machine.
"""
import argparse
import dataclasses
import itertools
import json
import os
import select
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "artel/peers/bin/python")
DEADLINE_SECONDS = 900  # torch.compile may take minutes
JAX_MODELS = ("mlp", "lenet5", "vgg11_bn", "resnet18", "resnet20", "gpt", "vit")  # those of bench/peers/jax_train.py
CLOSE_RACE = 0.9  # variants of the peer that reach this share of the fastest take part in all rounds


@dataclasses.dataclass
class Case:
    """A model that both sides know by the same name."""
    model: str
    images: bool = False  # whether memory formats of images make a difference to the peer
    unit: str = "samples/s"
    units_per_sample: int = 1


class Worker:
    """A process that speaks the "go SECONDS" protocol."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})
        self.speeds = []
        self.answer = None
        self._go(0)  # the first step creates kernels and buffers: not counted

    def run(self, seconds):
        self._go(seconds)
        self.speeds.append(self.answer["samples_per_second"])

    def _go(self, seconds):
        line = ""
        try:
            self.process.stdin.write(f"go {seconds}\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_SECONDS)
            line = self.process.stdout.readline() if ready else ""
            self.answer = json.loads(line)
        except (OSError, ValueError):
            self.close()
            sys.exit(f"bench: {self.name} gave no result but '{line.strip()}' (exit code {self.process.returncode})")

    def speed(self):
        return statistics.median(self.speeds)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_ours(program, model, threads, lanes):
    command = [program, "bench", "train", model, "--threads", str(threads), "--lanes", str(lanes), "--interactive"]
    return Worker("artel", command)


@dataclasses.dataclass(frozen=True)
class Variant:
    """A way in which a peer may train."""
    framework: str  # "PyTorch" or "JAX"
    compiled: bool = False
    channels_last: bool = False

    def options(self):
        return [*(["--compile"] if self.compiled else []), *(["--channels-last"] if self.channels_last else [])]

    def name(self):
        if self.framework == "JAX":
            return "JAX"
        return " ".join(["PyTorch", "compiled" if self.compiled else "eager", *(["channels last"] if self.channels_last else [])])


def start_peer(model, threads, variant):
    script = "jax_train.py" if variant.framework == "JAX" else "pytorch_train.py"
    command = [PEERS, os.path.join(ROOT, "bench/peers", script), model, "--threads", str(threads), *variant.options()]
    return Worker(variant.name(), command)


def peer_variants(case):
    """All variants of a model. PyTorch's memory formats differ for images only."""
    variants = [Variant("PyTorch", compiled, channels_last)
                for compiled, channels_last in itertools.product((False, True), (False, True) if case.images else (False,))]
    return variants + ([Variant("JAX")] if case.model in JAX_MODELS else [])


def fastest_variants(case, threads, seconds):
    """The variants of the peers worth measuring in full, each tried alone and for a moment."""
    speeds = {}
    for variant in peer_variants(case):
        worker = start_peer(case.model, threads, variant)
        worker.run(seconds)
        speeds[variant] = worker.speed()
        worker.close()
        print(f"trial: {case.model}, {threads} threads, {variant.name()}: {speeds[variant] * case.units_per_sample:.1f} {case.unit}",
              file=sys.stderr)
    return [variant for variant, speed in speeds.items() if speed >= CLOSE_RACE * max(speeds.values())]


def result(case, threads, ours, peer, peer_name, unit, better):
    return {"case": case, "threads": threads, "ours": round(ours, 1), "peer": round(peer, 1), "peer_name": peer_name,
            "unit": unit, "ratio": round(ours / peer, 3), "better": better}


def compare(program, case, threads, rounds, seconds):
    """Speed and memory of one model and number of threads. One lane is the computation of the peers. With a lane for each
    thread, which has its own batch statistics, there is a further row."""
    variants = fastest_variants(case, threads, seconds)
    lanes = sorted({1, threads})
    all_ours = [start_ours(program, case.model, threads, count) for count in lanes]
    ours = all_ours[0]
    peers = [start_peer(case.model, threads, variant) for variant in variants]
    for _ in range(rounds):
        for worker in (*all_ours, *peers):
            worker.run(seconds)
            time.sleep(0.05)  # lets spinning threads of the one go to sleep before the other starts
    for worker in (*all_ours, *peers):
        worker.close()
    peer = max(peers, key=Worker.speed)
    if ours.answer["batch"] != peer.answer["batch"]:
        sys.exit(f"bench: {case.model}: batches of {ours.answer['batch']} and {peer.answer['batch']} do not compare")
    name = f"{case.model} batch {ours.answer['batch']}"
    peer_name = f"{peer.name} {peer.answer['version']}"
    for worker, count in zip(all_ours, lanes):
        yield result(f"{name} training speed" + (f", {count} lanes" if count > 1 else ""), threads,
                     worker.speed() * case.units_per_sample, peer.speed() * case.units_per_sample, peer_name, case.unit,
                     "higher")
    yield result(f"{name} peak memory", threads, ours.answer["peak_rss_mb"], peer.answer["peak_rss_mb"], peer_name, "MB",
                 "lower")


def parse_arguments(program, cases):
    names = [case.model for case in cases]
    parser = argparse.ArgumentParser(prog=program, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--threads", default="1,2", help="numbers of threads to measure (default: 1,2)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a turn (default: 1.5)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each case instead of a table")
    parser.add_argument("--artel", default=os.path.join(ROOT, "build/release/artel"), help="the program to measure")
    arguments = parser.parse_args()
    for model in arguments.models:
        if model not in names:
            parser.error(f"unknown model '{model}', expected {', '.join(names)}")
    if not os.access(arguments.artel, os.X_OK):
        parser.error(f"{arguments.artel} does not exist; run make build")
    if not os.access(PEERS, os.X_OK):
        parser.error(f"{PEERS} does not exist; run tools/setup newest")
    return arguments


def main(program, cases, more=lambda arguments: ()):
    """Prints one row or one JSON object for each result; `more(arguments)` yields results of its own."""
    arguments = parse_arguments(program, cases)
    layout = "{case:46} {threads:>7} {ours:>10} {peer:>10} {unit:10} {ratio:>6}  {peer_name}"
    if not arguments.json:
        print(layout.format(case="case", threads="threads", ours="ours", peer="peer", unit="unit", ratio="ratio",
                            peer_name="peer (ratio: ours / peer; higher is better for speed, lower for memory)"))
    chosen = [case for case in cases if not arguments.models or case.model in arguments.models]
    threads = [int(count) for count in arguments.threads.split(",")]
    measured = (compare(arguments.artel, case, count, arguments.rounds, arguments.seconds)
                for case, count in itertools.product(chosen, threads))
    for row in itertools.chain(*measured, more(arguments)):
        print(json.dumps(row) if arguments.json else layout.format(**row), flush=True)
