"""What it costs to watch a run.

cost    samples/s of a small MLP and of LeNet-5 on two workers: unobserved (observe.live = false), with live.json, and with a
        dashboard that two clients follow as pages do; in turns, the median of the ratios within a round.
open    seconds until a dashboard of many long runs is drawn in Chromium, first from a cold server, then again.
memory  resident memory of a run over many steps.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARTEL = os.path.join(ROOT, "build", "release", "artel")
NETWORKS = {"mlp": ('layers = ["flatten", "dense 256", "relu", "dense 10"]', 64), "lenet5": ('name = "lenet5"', 64)}


def write_config(folder, name):
    model, batch = NETWORKS[name]
    path = os.path.join(folder, name + ".toml")
    with open(path, "w") as file:
        file.write(f'[data]\nset = "fashion_mnist"\n[model]\n{model}\n[train]\nbatch_size = {batch}\n'
                   '[cluster]\nworkers = 2\nthreads = 1\nlanes = 2\nstrategy = "allreduce"\n')
    return path


# Acts like an open page: it follows the stream, and asks for what has changed.
def follow(address, stop):
    def ask(path):
        return urllib.request.urlopen(address + path, timeout=10).read()
    try:
        stream = urllib.request.urlopen(address + "api/stream", timeout=10)
        last = 0
        while not stop.is_set():
            line = stream.readline()
            if not line.startswith(b"data: "):
                continue
            for run in json.loads(line[6:]):
                ask("api/runs")
                series = json.loads(ask(f"api/series?run={run}&points=1000&from={last}"))["series"]
                last = max([last] + [s["x"][-1] for s in series.values() if s["x"]])
    except OSError:
        pass


def speed(config, name, seconds, observed, pages):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "runs", name)
        os.makedirs(os.path.dirname(out))
        command = [ARTEL, "train", config, "--out", out, "--set", f"train.max_seconds={seconds}", "--set", "train.steps=100000000",
                   "--set", f"observe.live={str(observed).lower()}"]
        stop, threads, dashboard = threading.Event(), [], None
        if pages:
            dashboard = subprocess.Popen([ARTEL, "dashboard", os.path.dirname(out)], stdout=subprocess.PIPE, text=True,
                                         preexec_fn=lambda: os.nice(10))
            address = dashboard.stdout.readline().split()[1]
            threads = [threading.Thread(target=follow, args=(address, stop)) for _ in range(pages)]
            for thread in threads:
                thread.start()
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        finally:
            stop.set()
            if dashboard:
                dashboard.terminate()
                dashboard.wait()
            for thread in threads:
                thread.join()
        summary = json.load(open(os.path.join(out, "summary.json")))
        return summary["samples"] / summary["seconds"]


def cost(arguments):
    ways = {"live.json": (True, 0), "dashboard, 2 pages": (True, 2)}
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            config = write_config(folder, name)
            speed(config, name, 2, False, 0)
            ratios, bases = {way: [] for way in ways}, []
            for _ in range(arguments.rounds):
                before = speed(config, name, arguments.seconds, False, 0)
                measured = {way: speed(config, name, arguments.seconds, *options) for way, options in ways.items()}
                after = speed(config, name, arguments.seconds, False, 0)
                bases += [before, after]
                for way in ways:
                    ratios[way].append(measured[way] / ((before + after) / 2))
            noise = statistics.pstdev(bases) / statistics.mean(bases)
            for way, values in ratios.items():
                print(f"{name:8} {way:20} {100 * (statistics.median(values) - 1):+.2f} % of {statistics.median(bases):,.0f} samples/s "
                      f"(each: {', '.join(f'{100 * (v - 1):+.1f}' for v in values)}; unobserved runs differ by {100 * noise:.1f} %)")


def make_runs(folder, runs, points):
    import math
    for number in range(runs):
        run = os.path.join(folder, f"run-{number:02}")
        os.makedirs(run)
        with open(os.path.join(run, "config.toml"), "w") as file:
            file.write(f'[data]\nset = "mnist"\n[train]\nepochs = {number + 1}\n')
        with open(os.path.join(run, "metrics.jsonl"), "w") as file:
            for step in range(1, points + 1):
                loss = 2 * math.exp(-step / 20000) + 0.1 * math.sin(step * 12.9898 + number)
                file.write(f'{{"step":{step},"seconds":{step * 0.01:.4f},"train/loss":{loss:.8f},"train/learning_rate":0.1,'
                           f'"train/accuracy":{1 - loss / 3:.8f}}}\n')
        with open(os.path.join(run, "summary.json"), "w") as file:
            json.dump({"step": points, "stopped_by": "epochs"}, file)


def open_page(arguments):
    sys.path.insert(0, os.path.join(ROOT, "tests", "system", "observe"))
    from browser import Browser
    with tempfile.TemporaryDirectory() as folder:
        make_runs(folder, arguments.runs, arguments.points)
        dashboard = subprocess.Popen([ARTEL, "dashboard", folder], stdout=subprocess.PIPE, text=True)
        address = dashboard.stdout.readline().split()[1]
        browser = Browser()
        try:
            for which in ("first", "again"):
                begin = time.monotonic()
                browser.open(address)
                browser.wait_for("document.body?.dataset.ready === 'yes' && document.querySelectorAll('#charts canvas').length > 0")
                print(f"{arguments.runs} runs of {arguments.points:,} points, opened {which}: {time.monotonic() - begin:.2f} s")
                browser.open("about:blank")
            with open(f"/proc/{dashboard.pid}/status") as status:
                print("memory of the dashboard:", next(line.split(":")[1].strip() for line in status if line.startswith("VmRSS")))
        finally:
            browser.close()
            dashboard.terminate()
            dashboard.wait()


def memory(arguments):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "data.csv"), "w") as file:
            file.write("a,b,kind\n" + "".join(f"{i % 7},{i % 5},{'xy'[i % 2]}\n" for i in range(40000)))
        config = os.path.join(folder, "run.toml")
        with open(config, "w") as file:
            file.write(f'[data]\nset = "csv"\npath = "data.csv"\n[model]\nlayers = ["dense 4", "relu", "dense 2"]\n[train]\nbatch_size = 8\n'
                       f'steps = {arguments.steps}\nsave_every = 100000000\n[cluster]\nthreads = 1\n')
        out = os.path.join(folder, "run")
        run = subprocess.Popen([ARTEL, "train", config, "--out", out, "--set", "data.test_fraction=0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = []
        while run.poll() is None:
            time.sleep(1)
            try:
                live = json.load(open(os.path.join(out, "live.json")))
                seen.append((live["step"], live["workers"][0]["memory_bytes"] / 2**20))
            except (OSError, ValueError):
                pass
        if run.returncode != 0 or not seen:
            sys.exit("the run has failed")
        for step, size in seen[:: max(1, len(seen) // 8)] + seen[-1:]:
            print(f"step {step:>9,}: {size:.1f} MiB")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("what", nargs="*", choices=["cost", "open", "memory"], default=[])
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=8, help="of each training")
parser.add_argument("--runs", type=int, default=50)
parser.add_argument("--points", type=int, default=100_000)
parser.add_argument("--steps", type=int, default=1_000_000)
parsed = parser.parse_args()
for each in parsed.what or ["cost", "open", "memory"]:
    {"cost": cost, "open": open_page, "memory": memory}[each](parsed)
