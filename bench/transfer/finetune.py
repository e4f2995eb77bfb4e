#!/usr/bin/python3
"""`bench/run transfer finetune`: ResNet-18 at 224 x 224, batch 32: all of it trained, its last stage, its head alone; Artel
compared with PyTorch with `requires_grad = False`. Features are not kept. Below the table: the gain by freezing for each of them."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from training import Case, main, result, start_ours  # noqa: E402

PARTS = ("resnet18_end", "resnet18_head")


def gains(arguments):
    """Speed and memory of a frozen network relative to the same one that is trained, measured in turns."""
    for threads in (int(count) for count in arguments.threads.split(",")):
        workers = {name: start_ours(arguments.artel, name, threads, 1) for name in ("resnet18_all", *PARTS)}
        for _ in range(arguments.rounds):
            for worker in workers.values():
                worker.run(arguments.seconds)
        for worker in workers.values():
            worker.close()
        whole = workers["resnet18_all"]
        for name in PARTS:
            yield result(f"{name} relative to all: speed", threads, workers[name].speed(), whole.speed(), "artel, all trained",
                         "samples/s", "higher")
            yield result(f"{name} relative to all: peak memory", threads, workers[name].answer["peak_rss_mb"],
                         whole.answer["peak_rss_mb"], "artel, all trained", "MB", "lower")


main("bench/run transfer finetune", [Case(name, images=True) for name in ("resnet18_all", *PARTS)], gains)
