#!/usr/bin/env python3
"""Losses of mlp and fashion_cnn over 50 f32 training steps in PyTorch, from weights and data that a formula gives.

The same formula stands in tests/parity/hash_values.h; so nothing but the losses has to be recorded.
usage: torch_parity.py [--steps N] > tests/parity/torch_losses.txt
"""
import argparse

import numpy as np
import torch
import torch.nn.functional as F

from torch_workloads import FashionCNN, MLP


def hash_words(tag, count):
    """32-bit words h(tag, i) for i < count; arithmetic modulo 2**32."""
    with np.errstate(over='ignore'):
        h = np.arange(count, dtype=np.uint32) * np.uint32(2654435769) + np.uint32(tag) * np.uint32(2246822519)
        for shift, factor in ((16, 2146121005), (15, 2221713035)):
            h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
        return h ^ (h >> np.uint32(16))


def hash_uniform(tag, shape, bound):
    """f32 in [-bound, bound): 24 bits, scaled in f32."""
    u = (hash_words(tag, int(np.prod(shape))) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    return torch.from_numpy(((np.float32(2) * u - np.float32(1)) * np.float32(bound)).reshape(shape))


def run(name, model, x_shape, optimizer, steps):
    with torch.no_grad():
        for tag, p in enumerate(model.parameters(), start=1):
            fan_in = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(hash_uniform(tag, tuple(p.shape), fan_in**-0.5))
    x = hash_uniform(100, x_shape, 1.0)
    y = torch.from_numpy((hash_words(101, x_shape[0]) % np.uint32(10)).astype(np.int64))
    opt = optimizer(model.parameters())
    for step in range(1, steps + 1):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        print(name, step, f'{loss.item():.9g}')


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--steps', type=int, default=50)
    steps = ap.parse_args().steps
    torch.set_num_threads(2)
    print(f'# torch {torch.__version__.split("+")[0]}, f32, CPU; benchmarks/peers/torch_parity.py; workload step loss')
    run('mlp', MLP(), (128, 256), lambda p: torch.optim.SGD(p, lr=1e-3), steps)
    run('fashion_cnn', FashionCNN(), (128, 1, 28, 28), lambda p: torch.optim.Adam(p, lr=1e-4), steps)


if __name__ == '__main__':
    main()
