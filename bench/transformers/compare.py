#!/usr/bin/python3
"""`bench/run transformers`: GPT and ViT, trained by Artel and by PyTorch; how memory grows with the context; and how fast
GPT-2 writes, beside what the memory allows."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from training import Case, main, result, start_ours  # noqa: E402


def memory_of_long_contexts(arguments):
    """As many tokens in one long sample as in eight short ones: memory that is linear in the context stays the same."""
    if arguments.models:
        return
    peaks = []
    for model in ("gpt_2048", "gpt"):
        worker = start_ours(arguments.artel, model, 1, 1)
        peaks.append(worker.answer["peak_rss_mb"])
        worker.close()
    yield result("gpt context 2048 batch 1 peak memory", 1, *peaks, "artel, context 256 batch 8", "MB", "lower")


def generation(arguments):
    """A token needs one pass over all weights: the bound is the speed of memory, measured in the same run."""
    if arguments.models:
        return
    for threads in arguments.threads.split(","):
        command = [arguments.artel, "bench", "generate", "gpt2", "--threads", threads, "--json"]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        yield result("gpt2 124M generation", int(threads), answer["tokens_per_second"], answer["bound_tokens_per_second"],
                     "the memory's speed", "tokens/s", "higher")


def more(arguments):
    yield from memory_of_long_contexts(arguments)
    yield from generation(arguments)


main("bench/run transformers", [Case("gpt", unit="tokens/s", units_per_sample=256), Case("vit")], more)
