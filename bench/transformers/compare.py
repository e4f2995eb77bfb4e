#!/usr/bin/python3
"""`bench/run transformers`: training speed of GPT and ViT, memory of long contexts, and speed of generation by GPT-2 relative
to its memory bound."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from training import Case, Variant, main, result, start_ours, start_peer  # noqa: E402


def memory_of_long_contexts(arguments):
    """One long sample with as many tokens as eight short ones: memory that is linear in the context stays the same."""
    if arguments.models:
        return
    peaks = []
    for model in ("gpt_2048", "gpt"):
        worker = start_ours(arguments.artel, model, 1, 1)
        peaks.append(worker.answer["peak_rss_mb"])
        worker.close()
    yield result("gpt context 2048 batch 1 peak memory", 1, *peaks, "artel, context 256 batch 8", "MB", "lower")


def memory_at_real_size(program, model, arguments):
    """Peak memory of a model whose weights or activations fill gigabytes, one step each. PyTorch runs eagerly, in the memory
    format that takes least."""
    if arguments.models:
        return
    layouts = (False, True) if model == "resnet50" else (False,)
    peers = []
    for channels_last in layouts:
        worker = start_peer(model, 2, Variant("PyTorch", channels_last=channels_last))
        worker.run(0)
        peers.append((worker.answer["peak_rss_mb"], f"{worker.name} {worker.answer['version']}"))
        worker.close()
    for lanes in (1, 2):
        worker = start_ours(program, model, 2, lanes)
        worker.run(0)
        yield result(f"{model} peak memory, {lanes} lanes", 2, worker.answer["peak_rss_mb"], *min(peers), "MB", "lower")
        worker.close()


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
    for model in ("gpt2", "resnet50"):
        yield from memory_at_real_size(arguments.artel, model, arguments)
    yield from generation(arguments)


main("bench/run transformers", [Case("gpt", unit="tokens/s", units_per_sample=256), Case("vit")], more)
