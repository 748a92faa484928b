#!/usr/bin/env python3
"""Reference workloads from the same weights and data in Halftone and in PyTorch, f32 and f64.

usage: torch_parity.py --record > tests/parity/torch_losses.txt
       torch_parity.py --program build/release/benchmarks/parity [--only NAME,...] [--steps N] [--amp off,bf16,f16] [--batch N] [--channels-last]
The first records the losses of 50 f32 steps of the small workloads. The second compares, with the packages torch and safetensors:
the losses of N steps, and each parameter's gradient in the first, by its distance from PyTorch's in f64 over the distance of PyTorch's own;
in 16 bit by the distance of both from PyTorch's f32. --batch takes fewer images or sequences than the workload has;
--channels-last has PyTorch's f32 compute in the layout that Halftone takes for images.
Weights and data come from the formula of benchmarks/support/hash_values.h; so nothing but losses has to be recorded.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
import torch

from torch_workloads import workloads

X, TARGET, BOXES = 1000, 1001, 1002  # tags of the data; those of the parameters begin at 1


def hash_words(tag, count):
    """32-bit words h(tag, i) for i < count; arithmetic modulo 2**32."""
    with np.errstate(over='ignore'):
        h = np.arange(count, dtype=np.uint32) * np.uint32(2654435769) + np.uint32(tag) * np.uint32(2246822519)
        for shift, factor in ((16, 2146121005), (15, 2221713035)):
            h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
        return h ^ (h >> np.uint32(16))


def uniform(tag, shape, bound, center=0.0):
    """f32 in [center - bound, center + bound): 24 bits, scaled in f32."""
    u = (hash_words(tag, int(np.prod(shape))) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    return torch.from_numpy(((np.float32(2) * u - np.float32(1)) * np.float32(bound) + np.float32(center)).reshape(shape))


def labels(tag, shape, classes):
    return torch.from_numpy((hash_words(tag, int(np.prod(shape))) % np.uint32(classes)).astype(np.int64).reshape(shape))


def sparse_labels(tag, shape, classes, every):
    chosen = torch.from_numpy((hash_words(tag + 1000, int(np.prod(shape))) % np.uint32(every) == 0).reshape(shape))
    return (labels(tag, shape, classes - 1) + 1) * chosen


BATCHES = dict(mlp=128, fashion_cnn=128, resnet50=16, bert_base=8, gpt2_small=4, edsr=8, ssd512_resnet50=2)


def data_of(name, batch):
    """x and target of a workload."""
    n = batch or BATCHES[name]
    if name == 'mlp': return uniform(X, (n, 256), 1), labels(TARGET, (n,), 10)
    if name == 'fashion_cnn': return uniform(X, (n, 1, 28, 28), 1), labels(TARGET, (n,), 10)
    if name == 'resnet50': return uniform(X, (n, 3, 224, 224), 1), labels(TARGET, (n,), 1000)
    if name == 'bert_base': return labels(X, (n, 128), 30522), labels(TARGET, (n * 128,), 30522)
    if name == 'gpt2_small': return labels(X, (n, 256), 50257), labels(TARGET, (n * 256,), 50257)
    if name == 'edsr': return uniform(X, (n, 3, 48, 48), 1), uniform(TARGET, (n, 3, 192, 192), 1)
    return uniform(X, (n, 3, 512, 512), 1), (sparse_labels(TARGET, (n, 18432), 21, 100), uniform(BOXES, (n, 18432, 4), 1))


def to(value, dtype):
    if isinstance(value, tuple): return tuple(to(v, dtype) for v in value)
    return value.to(dtype) if value.is_floating_point() else value


def run(workload, batch, steps, dtype, low=None, layout=torch.contiguous_format):
    """Losses of the first steps, and the gradients of the first by name."""
    name, make, _, loss_fn, make_optimizer, _ = workload
    model = make().train()
    with torch.no_grad():
        for tag, (path, p) in enumerate(model.named_parameters(), start=1):
            fan_in = p[0].numel() if p.dim() > 1 else p.numel()
            center = 1 if p.dim() == 1 and path.endswith('weight') else 0
            p.copy_(uniform(tag, tuple(p.shape), np.float32(fan_in**-0.5), center))
    model.to(dtype, memory_format=layout)
    x, y = to(data_of(name, batch), dtype)
    optimizer = make_optimizer(model.parameters())
    losses, gradients = [], None
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast('cpu', dtype=low or torch.bfloat16, enabled=low is not None):
            loss = loss_fn(model(x), y)
        loss.backward()
        if gradients is None: gradients = {path: p.grad.double().clone() for path, p in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def relative(values, of): return [abs(a - b) / abs(b) for a, b in zip(values, of)]


LOW = {'bf16': torch.bfloat16, 'f16': torch.float16}


def run_ours(name, program, batch, steps, amp):
    from safetensors.torch import load_file
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'gradients.safetensors')
        done = subprocess.run([program, f'--workload={name}', f'--batch={batch}', f'--amp={amp}', f'--steps={steps}', f'--gradients={path}',
                               f'--threads={torch.get_num_threads()}'], check=True, capture_output=True, text=True)
        return json.loads(done.stdout), {k: v.double() for k, v in load_file(path).items()}


def compare(workload, program, batch, steps, amps, layout):
    """Each of `amps`: what the errors are measured from is f64, or f32 where 16 bit is compared."""
    f32 = run(workload, batch, steps, torch.float32, layout=layout)
    for amp in amps:
        ours = run_ours(workload[0], program, batch, steps, amp)
        if amp == 'off': print_errors(workload[0], batch, amp, ours, f32, run(workload, batch, steps, torch.float64))
        else: print_errors(workload[0], batch, amp, ours, run(workload, batch, steps, torch.float32, LOW[amp]), f32)


def print_errors(name, batch, amp, ours, theirs, of):
    (ours, gradients), (theirs, their_gradients), (right, right_gradients) = ours, theirs, of
    assert gradients.keys() == right_gradients.keys(), gradients.keys() ^ right_gradients.keys()
    ratios = {}
    for path, g in right_gradients.items():
        size = g.norm().item()
        error, own = ((v[path] - g).norm().item() for v in (gradients, their_gradients))
        # A gradient that is zero but for rounding, or that both have exactly, has no ratio to tell.
        ratios[path] = error / own if own > 1e-9 * size and size > 1e-12 else (1.0 if error <= 1e-7 * max(size, 1e-12) else float('inf'))
    worst = max(ratios, key=ratios.get)
    print(json.dumps(dict(
        name=name, batch=batch or BATCHES[name], amp=amp, torch=torch.__version__.split('+')[0], params=ours['params'], loss=ours['losses'][0], right_loss=right[0],
        first_loss_error=relative(ours['losses'], right)[0], torch_first_loss_error=relative(theirs, right)[0],
        largest_loss_error=max(relative(ours['losses'], right)), torch_largest_loss_error=max(relative(theirs, right)),
        gradients=len(ratios), above_2=sum(r > 2 for r in ratios.values()), median_ratio=sorted(ratios.values())[len(ratios) // 2],
        worst_ratio=ratios[worst], worst=worst)), flush=True)


def record(steps):
    print(f'# torch {torch.__version__.split("+")[0]}, f32, CPU; benchmarks/peers/torch_parity.py --record; workload step loss')
    for workload in workloads():
        if workload[0] not in ('mlp', 'fashion_cnn'): continue
        for step, loss in enumerate(run(workload, 0, steps, torch.float32)[0], start=1): print(workload[0], step, f'{loss:.9g}')


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--record', action='store_true'); ap.add_argument('--program'); ap.add_argument('--only')
    ap.add_argument('--steps', type=int, default=1); ap.add_argument('--amp', default='off', help='off, bf16, f16, or several: off,bf16')
    ap.add_argument('--threads', type=int, default=2); ap.add_argument('--batch', type=int, default=0)
    ap.add_argument('--channels-last', action='store_true')
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    if a.record: return record(50)
    if not a.program: ap.error('expected --record or --program')
    layout = torch.channels_last if a.channels_last else torch.contiguous_format
    for workload in workloads():
        if not a.only or workload[0] in a.only.split(','): compare(workload, a.program, a.batch, a.steps, a.amp.split(','), layout)


if __name__ == '__main__':
    main()
