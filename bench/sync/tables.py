#!/usr/bin/python3
"""An embedding table between two emulated hosts: its touched rows compared with the whole table. Needs root.

A classifier of bags of words with a table of 100,000 x 32 and 256 touched rows in a batch, on two workers of one thread. The whole table
travels with `cluster.reduction = "fast"`, or with another program (--before). Prints seconds and bytes of a step.

    bench/sync/tables.py [--rate 1gbit] [--artel PROGRAM] [--before PROGRAM] [--optimizer "adam lazy"]
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
from two_hosts import TwoHosts

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIG = """[data]
set = "npz"
path = "tokens.npz"
[model]
layers = ["embedding_bag 100000 32", "dense 2"]
[train]
batch_size = 64
steps = {steps}
test = false
optimizer = {optimizer}
[cluster]
threads = 1
"""
OPTIMIZERS = {"sgd": '{ name = "sgd", lr = 0.1 }', "adam": '{ name = "adam", lr = 0.001 }',
              "adam lazy": '{ name = "adam", lr = 0.001, lazy_rows = true }'}


def write_tokens(path):
    random = np.random.default_rng(1)
    x = random.integers(0, 100_000, (4096, 4), dtype=np.int32)
    np.savez(path, x_train=x, y_train=(x.sum(1) % 2).astype(np.int32))


def measure(artel, config, folder, hosts, settings):
    token = os.path.join(folder, "token")
    with open(token, "w") as file:
        file.write("tables bench token 0123456789abcdef")
    os.chmod(token, 0o600)
    run = os.path.join(folder, "run")
    subprocess.run(["rm", "-rf", run], check=True)
    words = [artel, "train", config, "--out", run, "-n", "2", "--join", f"{hosts.address}:29750", "--token-file", token]
    for setting in settings:
        words += ["--set", setting]
    others = [subprocess.Popen(hosts.command(host, words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
              for host in (0, 1)]
    for process in others:
        message = process.communicate(timeout=300)[1].decode()
        if process.returncode:
            raise SystemExit(f"tables: {' '.join(words)}: {message}")
    lines = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    summary = json.load(open(os.path.join(run, "summary.json")))
    return lines, summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--artel", default=f"{ROOT}/build/release/artel")
    parser.add_argument("--before", help="a program that exchanges whole tables; default: the same with reduction = fast")
    parser.add_argument("--optimizer", default="adam lazy", choices=OPTIMIZERS)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, TwoHosts(options.rate) as hosts:
        write_tokens(os.path.join(folder, "tokens.npz"))
        results = {}
        for name, artel, settings in (("touched rows", options.artel, []),
                                      ("whole table", options.before or options.artel,
                                       [] if options.before else ["cluster.reduction=fast"])):
            old = name == "whole table"
            optimizer = OPTIMIZERS["adam" if old and options.optimizer == "adam lazy" else options.optimizer]
            text = CONFIG.format(steps=options.steps, optimizer=optimizer)
            if options.before and old:
                text = text.replace("test = false\n", "")
            config = os.path.join(folder, "run.toml")
            with open(config, "w") as file:
                file.write(text)
            lines, summary = measure(artel, config, folder, hosts, settings)
            results[name] = seconds_and_bytes(lines, summary, options.steps)
            print(f"{name:14} {1e3 * results[name][0]:8.2f} ms {results[name][1] / 1e3:10.1f} kB per step and worker", flush=True)
        ratio = [results["whole table"][i] / results["touched rows"][i] for i in (0, 1)]
        print(f"{'ratio':14} {ratio[0]:8.1f}    {ratio[1]:10.1f}")


def seconds_and_bytes(lines, summary, steps):
    sent = summary["traffic"]
    workers = sent if isinstance(sent, list) else list(sent.values())
    bytes_sent = max(worker["sent_bytes"] for worker in workers)
    return summary["seconds"] / steps, bytes_sent / steps


if __name__ == "__main__":
    main()
