#!/usr/bin/env python3
"""Training steps of an embedding table with sparse=True in PyTorch on this machine's CPU, the twin of benchmarks/embedding.cc.

usage: torch_embedding.py [--rows N] [--small_rows N] [--width N] [--ids N] [--threads N] [--steps N] [--rounds N]
Prints one JSON line an optimizer: the best median of the rounds, in milliseconds.
"""
import argparse, json, statistics, time, warnings
import torch

parser = argparse.ArgumentParser()
for name, default in (("rows", 200_000), ("small_rows", 2_000), ("width", 64), ("ids", 4_096), ("threads", 2), ("steps", 50), ("rounds", 5)):
    parser.add_argument(f"--{name}", type=int, default=default)
args = parser.parse_args()
torch.set_num_threads(args.threads)
warnings.filterwarnings("ignore", message="Sparse invariant checks")
torch.manual_seed(1)
below = torch.randint(args.small_rows, (args.ids,))
gradient = torch.randn(args.ids, args.width)


class Timed:
    def __init__(self, rows, optimizer):
        self.table = torch.nn.Embedding(rows, args.width, sparse=True)
        self.optimizer = optimizer(self.table.parameters(), lr=1e-3)
        share = rows // args.small_rows
        self.ids = (torch.arange(args.small_rows) * share + torch.randint(share, (args.small_rows,)))[below]
        self.best = float("inf")
        self.step()

    def step(self):
        self.optimizer.zero_grad()
        (self.table(self.ids) * gradient).sum().backward()
        self.optimizer.step()

    def round(self):
        seconds = []
        for _ in range(args.steps):
            start = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - start)
        self.best = min(self.best, statistics.median(seconds))


for optimizer in (torch.optim.SGD, torch.optim.Adagrad, torch.optim.SparseAdam):
    large, small = Timed(args.rows, optimizer), Timed(args.small_rows, optimizer)
    for _ in range(args.rounds):
        large.round()
        small.round()
    print(json.dumps({"optimizer": optimizer.__name__, "rows": args.rows, "small_rows": args.small_rows, "width": args.width, "ids": args.ids, "threads": args.threads,
                      "torch_ms": round(large.best * 1e3, 3), "torch_small_ms": round(small.best * 1e3, 3), "large_over_small": round(large.best / small.best, 2), "torch": torch.__version__}), flush=True)
