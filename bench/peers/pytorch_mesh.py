"""PyTorch's side of `bench/run mesh --newest`: two processes of one thread each that share a GPT, over Gloo on one machine.

    pytorch_mesh.py pipeline   6 blocks of width 384 in two stages, 1F1B, 8 micro-batches (torch.distributed.pipelining)
    pytorch_mesh.py shard      GPT-2 small, weights, gradients and optimizer in parts (torch.distributed.fsdp.fully_shard)
    pytorch_mesh.py replicate  the same, each process with the whole network (DistributedDataParallel)

Prints one JSON line: samples per second of both together, without the first quarter of the steps, and the larger peak of memory.
"""
import argparse
import json
import os
import resource
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"  # read when torch is loaded

import torch  # noqa: E402
from torch import distributed, multiprocessing, nn  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.pipelining import PipelineStage, Schedule1F1B  # noqa: E402
from torch.nn import functional  # noqa: E402

from pytorch_transformers import Gpt  # noqa: E402

PROCESSES = 2


class FirstStage(nn.Module):
    def __init__(self, model, blocks):
        super().__init__()
        self.tokens, self.positions, self.blocks = model.tokens, model.positions, model.blocks[:blocks]

    def forward(self, tokens):
        return self.blocks(self.tokens(tokens) + self.positions.weight[:tokens.shape[1]])


class LastStage(nn.Module):
    """The head has weights of its own: PyTorch's pipelines do not tie weights of two stages."""

    def __init__(self, model, blocks):
        super().__init__()
        self.blocks, self.norm = model.blocks[blocks:], model.norm
        self.head = nn.Linear(model.tokens.weight.shape[1], model.tokens.weight.shape[0], bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(x)))


def loss_of(logits, tokens):
    return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens.reshape(-1))


def pipeline_step(rank, arguments):
    batch, context, micro_batches = 16, 64, 8
    torch.manual_seed(1)
    model = Gpt(context, vocabulary=arguments.vocabulary)
    stage_model = FirstStage(model, 3) if rank == 0 else LastStage(model, 3)
    optimizer = torch.optim.AdamW(stage_model.parameters(), 3e-4)
    stage = PipelineStage(stage_model, rank, PROCESSES, torch.device("cpu"))
    schedule = Schedule1F1B(stage, micro_batches, loss_fn=loss_of)
    tokens = torch.randint(0, arguments.vocabulary, (batch, context))

    def step():
        if rank == 0:
            schedule.step(tokens)
        else:
            schedule.step(target=tokens, losses=[])
        optimizer.step()
        optimizer.zero_grad()

    return step, batch


def data_step(rank, arguments):
    batch, context = 2, 32  # of both processes
    torch.manual_seed(1)
    model = Gpt(1024, width=768, depth=12, heads=12, vocabulary=50257)
    if arguments.mode == "shard":
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    else:
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=25)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    tokens = torch.randint(0, 50257, (batch // PROCESSES, context))

    def step():
        loss_of(model(tokens), tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, batch


def work(rank, arguments, store, results):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=PROCESSES)
    step, batch = (pipeline_step if arguments.mode == "pipeline" else data_step)(rank, arguments)
    uncounted = arguments.steps // 4
    for number in range(arguments.steps):
        if number == uncounted:
            distributed.barrier()
            begin = time.perf_counter()
        step()
    distributed.barrier()
    seconds = time.perf_counter() - begin
    results.put(((arguments.steps - uncounted) * batch / seconds,
                 resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("pipeline", "shard", "replicate"))
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--vocabulary", type=int, default=28, help="of the pipeline's network")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (arguments, os.path.join(folder, "store"), results), PROCESSES)
    measured = [results.get(timeout=10) for _ in range(PROCESSES)]
    print(json.dumps({"samples_per_second": min(speed for speed, _ in measured),
                      "peak_rss_mb": max(memory for _, memory in measured), "version": torch.__version__}))


if __name__ == "__main__":
    main()
