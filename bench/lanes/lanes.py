"""Speed of one worker with several lanes relative to one lane.

Processes with different numbers of lanes take turns, so load on the machine hits all of them. Printed is
the median over rounds of each ratio, by wall-clock time and by processor time; the latter is steadier on
a busy machine."""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Model and batch.
MODELS = ["mlp", "mlp:256", "lenet5", "vgg11_bn", "vgg11_bn:256", "resnet18", "resnet18:256", "resnet50", "gpt", "vit", "lstm"]


class Bench:
    def __init__(self, artel, model, threads, lanes):
        name, _, batch = model.partition(":")
        command = [artel, "bench", "train", name, "--threads", str(threads), "--lanes", str(lanes), "--interactive"]
        if batch:
            command += ["--batch", batch]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def go(self, seconds):
        self.process.stdin.write(f"go {seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench/run lanes: artel bench ended; its error is above")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(artel, model, threads, lanes, rounds, seconds):
    benches = {n: Bench(artel, model, threads, n) for n in lanes}
    for bench in benches.values():
        bench.go(0)
    results = {n: [] for n in lanes}
    for _ in range(rounds):
        for n, bench in benches.items():
            results[n].append(bench.go(seconds))
    for bench in benches.values():
        bench.close()
    return results


def ratios(results, base, n, key):
    return statistics.median(b[key] / a[key] for a, b in zip(results[base], results[n]))


def main():
    parser = argparse.ArgumentParser(prog="bench/run lanes", description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS, help="MODEL or MODEL:BATCH, default: %(default)s")
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1, help="of each turn")
    parser.add_argument("--artel", default=os.path.join(HERE, "../../build/release/artel"))
    parser.add_argument("--json", action="store_true", help="one line for each row")
    arguments = parser.parse_args()
    base = arguments.lanes[0]
    if not arguments.json:
        print("model         threads  lanes  speed  by CPU time  peak memory   (all relative to "
              f"{base} lane{'s' if base > 1 else ''})")
    for model in arguments.models:
        for threads in arguments.threads:
            results = compare(arguments.artel, model, threads, arguments.lanes, arguments.rounds, arguments.seconds)
            for n in arguments.lanes[1:]:
                row = {"model": model, "threads": threads, "lanes": n,
                       "speed": ratios(results, base, n, "samples_per_second"),
                       "cpu": 1 / ratios(results, base, n, "cpu_seconds_per_step"),
                       "memory": ratios(results, base, n, "peak_rss_mb")}
                if arguments.json:
                    print(json.dumps(row), flush=True)
                else:
                    print(f"{model:13} {threads:7} {n:6} {row['speed']:6.2f} {row['cpu']:12.2f} {row['memory']:12.2f}", flush=True)


if __name__ == "__main__":
    main()
