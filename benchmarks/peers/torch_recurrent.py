#!/usr/bin/env python3
"""Recurrent networks with their gradients in PyTorch on this machine's CPU, the twin of benchmarks/recurrent.cc.

usage: torch_recurrent.py [--batch N] [--sequence N] [--size N] [--layers N] [--threads N] [--steps N] [--rounds N]
Prints one JSON line a layer type and dtype: the best median of the rounds, in milliseconds.
"""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser()
for name, default in (("batch", 32), ("sequence", 128), ("size", 256), ("layers", 2), ("threads", 2), ("steps", 5), ("rounds", 5)):
    parser.add_argument(f"--{name}", type=int, default=default)
args = parser.parse_args()
torch.set_num_threads(args.threads)
shape = (args.sequence, args.batch, args.size)
for kind in (torch.nn.LSTM, torch.nn.GRU):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch.manual_seed(1)
        layer = kind(args.size, args.size, args.layers)
        x = torch.randn(shape, requires_grad=True)
        dy = torch.randn(shape)

        def step():
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                y = layer(x)[0]
            for d in torch.autograd.grad(y, [x, *layer.parameters()], dy.to(y.dtype)):
                d.sum()

        try:
            step()
        except RuntimeError as error:
            print(json.dumps({"layer": kind.__name__.lower(), "dtype": str(dtype), "error": str(error).splitlines()[0]}), flush=True)
            continue
        best = float("inf")
        for _ in range(args.rounds):
            seconds = []
            for _ in range(args.steps):
                start = time.perf_counter()
                step()
                seconds.append(time.perf_counter() - start)
            best = min(best, statistics.median(seconds))
        print(json.dumps({"layer": kind.__name__.lower(), "shape": list(shape), "layers": args.layers, "dtype": str(dtype), "threads": args.threads, "torch_ms": round(best * 1e3, 2), "torch": torch.__version__}), flush=True)
