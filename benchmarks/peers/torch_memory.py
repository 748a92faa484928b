#!/usr/bin/env python3
"""Peak memory of a training step, Halftone's train_step beside PyTorch eager, for the reference workloads.

usage: torch_memory.py [--build DIR] [--workloads a,b] [--amp off,bf16] [--threads N] [--steps N] [--budget SHARE]
Prints one row per workload and precision: MiB at the peak, ours / PyTorch's, and the same less what the code alone takes.

Both sides are measured alike: the largest resident set (ru_maxrss) of a process that makes two steps. For the last column that of a
process that makes mlp's steps is taken off, in which every library is loaded and the data is nothing. Everything else counts:
parameters, gradients, optimizer state, activations, scratch, and what an allocator keeps.
PyTorch: torch_workloads.py's models and optimizers, eager, glibc's allocator as it comes.
"""
import argparse
import json
import os
import resource
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ('fashion_cnn', 'resnet50', 'bert_base', 'gpt2_small', 'edsr', 'ssd512_resnet50')


def run_torch(name, amp, threads, steps):
    """In a process of its own: the peak of the resident set in MiB."""
    import torch
    import torch_workloads
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    _, make, data, loss_of, optimizer_of, _ = next(w for w in torch_workloads.workloads() if w[0] == name)
    model = make().train()
    x, y = torch_workloads.make_data(data, model, 'cpu', False)
    optimizer = optimizer_of(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cpu', dtype=torch.bfloat16, enabled=amp == 'bf16'):
            loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        del loss
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}: exit status {done.returncode}\n{done.stderr}')
    return done.stdout.strip().splitlines()[-1]


def torch_peak(args, name, amp):
    return float(output_of([sys.executable, os.path.abspath(__file__), '--torch', name, '--amp', amp, '--threads', str(args.threads),
                            '--steps', str(args.steps)]))


def our_peak(args, name, amp):
    command = [os.path.join(args.build, 'benchmarks', 'train_step'), f'--workload={name}', f'--amp={amp}', f'--threads={args.threads}',
               f'--steps={args.steps - 1}']
    if args.budget: command.append(f'--memory_budget={args.budget}')
    return json.loads(output_of(command))['peak_mib']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--workloads', default=','.join(NAMES))
    parser.add_argument('--amp', default='off,bf16')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--steps', type=int, default=2, help='steps on both sides')
    parser.add_argument('--budget', type=float, default=0, help='run our side with this share of its working memory; 0: as it comes')
    parser.add_argument('--torch', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch:
        print(run_torch(args.torch, args.amp, args.threads, args.steps))
        return
    print('| workload | | Halftone, MiB | PyTorch, MiB | ratio | less loaded code |\n| --- | --- | ---: | ---: | ---: | ---: |', flush=True)
    for amp in args.amp.split(','):
        ours_alone, torch_alone = our_peak(args, 'mlp', amp), torch_peak(args, 'mlp', amp)
        for name in args.workloads.split(','):
            ours, theirs = our_peak(args, name, amp), torch_peak(args, name, amp)
            data = (ours - ours_alone) / (theirs - torch_alone)
            print(f'| {name} | {"f32" if amp == "off" else amp} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} | {data:.2f} |', flush=True)


if __name__ == '__main__':
    main()
