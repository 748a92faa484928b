#!/usr/bin/env python3
"""Attention with its gradients in PyTorch on this machine's CPU, the twin of benchmarks/attention.cc.

usage: torch_attention.py [--batch N] [--heads N] [--positions N] [--columns N] [--causal] [--threads N] [--steps N] [--rounds N]
Prints one JSON line a dtype: the best median of the rounds, in milliseconds.
"""
import argparse, json, statistics, time
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
for name, default in (("batch", 8), ("heads", 12), ("positions", 1024), ("columns", 64), ("threads", 2), ("steps", 3), ("rounds", 3)):
    parser.add_argument(f"--{name}", type=int, default=default)
parser.add_argument("--causal", action="store_true")
args = parser.parse_args()
torch.set_num_threads(args.threads)
shape = (args.batch, args.heads, args.positions, args.columns)
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    torch.manual_seed(1)
    q, k, v = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))
    dy = torch.randn(shape, dtype=dtype)

    def step():
        y = F.scaled_dot_product_attention(q, k, v, is_causal=args.causal)
        for d in torch.autograd.grad(y, (q, k, v), dy):
            d.sum()

    step()
    best = float("inf")
    for _ in range(args.rounds):
        seconds = []
        for _ in range(args.steps):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
        best = min(best, statistics.median(seconds))
    print(json.dumps({"shape": list(shape), "causal": args.causal, "dtype": str(dtype), "threads": args.threads, "torch_ms": round(best * 1e3, 2), "torch": torch.__version__}), flush=True)
