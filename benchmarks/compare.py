#!/usr/bin/env python3
"""Times Halftone, bare oneDNN and PyTorch in turn and prints the table of benchmarks/README.md.

Every round runs each program once, one after another, so that a slow moment of the machine meets all of them; the best median of all
rounds counts. Run it on a machine that does nothing else, with a Python that has torch.
usage: compare.py [--build DIR] [--rounds N] [--threads N] [--workloads a,b]
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def json_line(command):
    """The last line that a program prints, which is a JSON object."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}: exit status {done.returncode}\n{done.stderr}')
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(args, workload):
    """Best seconds by column over all rounds."""
    best = {}

    def keep(column, seconds):
        best[column] = min(best.get(column, float('inf')), seconds)

    ours = [os.path.join(args.build, 'benchmarks', 'train_step'), f'--workload={workload}', f'--threads={args.threads}']
    torch = [sys.executable, os.path.join(HERE, 'peers', 'torch_workloads.py'), '--only', workload, '--threads',
             str(args.threads)]
    for _ in range(args.rounds):
        for amp in ('off', 'bf16', 'f16'):
            result = json_line(ours + [f'--amp={amp}'] + (['--bare'] if amp == 'off' else []))
            keep(f'halftone {amp}', result['step_s'])
            if amp == 'off':
                keep('oneDNN f32', result['bare_f32_s'])
                keep('oneDNN bf16', result['bare_bf16_s'])
        for amp in ('off', 'bf16'):
            result = json_line(torch + ['--amp', amp])
            keep(f'torch {amp}', result['step_s'])
            keep.version = result['framework']
    return best, keep.version


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--workloads', default='mlp,fashion_cnn')
    args = parser.parse_args()
    rows, version = {}, ''
    for workload in args.workloads.split(','):
        rows[workload], version = measure(args, workload)
    columns = list(next(iter(rows.values())))
    print(f'{version}, {args.threads} threads, best median of {args.rounds} rounds; milliseconds a step')
    print('| workload | ' + ' | '.join(columns) + ' |')
    print('| --- |' + ' ---: |' * len(columns))
    for workload, best in rows.items():
        print(f'| {workload} | ' + ' | '.join(f'{best[c] * 1e3:.3f}' for c in columns) + ' |')
    for workload, best in rows.items():
        print(f'{workload}: {best["halftone off"] / best["oneDNN f32"]:.2f}x bare oneDNN, '
              f'{best["torch off"] / best["halftone off"]:.2f}x as fast as PyTorch in f32; '
              f'bf16 {best["halftone off"] / best["halftone bf16"]:.2f}x our f32')


if __name__ == '__main__':
    main()
