#!/usr/bin/env python3
"""Times Halftone, bare oneDNN and PyTorch in turn and prints the tables of benchmarks/measured.md.

Every round runs each program once, one after another, so that a slow moment of the machine meets all of them; the best median of all
rounds counts. Run it on a machine that does nothing else, with a Python that has torch.
usage: compare.py [--build DIR] [--rounds N] [--threads N] [--workloads a,b] [--modes eager,channels-last,compile] [--amp off,bf16] [--bare]
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# How PyTorch runs: name of the column, and what torch_workloads.py is told.
MODES = {'eager': ['--fused'], 'channels-last': ['--fused', '--channels-last'],
         'compile': ['--fused', '--channels-last', '--mode', 'compile']}
IMAGES = ('fashion_cnn', 'resnet50', 'edsr', 'ssd512_resnet50')  # whose layout can be channels-last


def json_line(command):
    """The last line that a program prints, which is a JSON object."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}: exit status {done.returncode}\n{done.stderr}')
    return json.loads(done.stdout.strip().splitlines()[-1])


def modes_of(args, workload):
    return [mode for mode in args.modes.split(',') if mode != 'channels-last' or workload in IMAGES]


def measure(args, workload):
    """Best seconds by column over all rounds, the best share of the peak by precision, and PyTorch's version."""
    best, share, version = {}, {}, ''

    def keep(column, seconds):
        best[column] = min(best.get(column, float('inf')), seconds)

    ours = [os.path.join(args.build, 'benchmarks', 'train_step'), f'--workload={workload}', f'--threads={args.threads}',
            '--peak']
    torch = [sys.executable, os.path.join(HERE, 'peers', 'torch_workloads.py'), '--only', workload, '--threads',
             str(args.threads)]
    for _ in range(args.rounds):
        for amp in args.amp.split(','):
            bare = args.bare and amp == 'off'
            result = json_line(ours + [f'--amp={amp}'] + (['--bare'] if bare else []))
            keep(f'Halftone {amp}', result['step_s'])
            share[amp] = max(share.get(amp, 0), result['share_of_peak'])
            if bare:
                keep('oneDNN off', result['bare_f32_s'])
                keep('oneDNN bf16', result['bare_bf16_s'])
            if amp == 'f16':
                continue  # PyTorch's autocast refuses it on CPUs
            for mode in modes_of(args, workload):
                result = json_line(torch + MODES[mode] + ['--amp', amp])
                keep(f'{mode} {amp}', result['step_s'])
                version = result['framework']
    return best, share, version


def row(args, workload, amp, best, share):
    ours = best[f'Halftone {amp}']
    peers = {mode: best[f'{mode} {amp}'] for mode in args.modes.split(',') if f'{mode} {amp}' in best}
    cells = [workload, {'off': 'f32'}.get(amp, amp), f'{ours * 1e3:.4g}', f'{share[amp]:.0%}']
    cells += [f'{peers[mode] * 1e3:.4g}' if mode in peers else '' for mode in args.modes.split(',')]
    cells.append(f'{min(peers.values()) / ours:.2f}' if peers else '')
    if args.bare:
        cells.append(f'{best[f"oneDNN {amp}"] * 1e3:.4g}' if f'oneDNN {amp}' in best else '')
    return '| ' + ' | '.join(cells) + ' |'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--workloads', default='mlp,fashion_cnn')
    parser.add_argument('--modes', default='eager', help='of ' + ', '.join(MODES))
    parser.add_argument('--amp', default='off,bf16')
    parser.add_argument('--bare', action='store_true', help='the same step in bare oneDNN: mlp and fashion_cnn')
    args = parser.parse_args()
    modes = args.modes.split(',')
    for mode in modes:
        if mode not in MODES:
            parser.error(f'--modes: "{mode}"; expected {", ".join(MODES)}')
    columns = ['workload', '', 'Halftone', 'of peak'] + [f'PyTorch, {m}' for m in modes] + ['best PyTorch / Halftone']
    columns += ['bare oneDNN'] if args.bare else []
    print('milliseconds a step, best median; of peak: the arithmetic of the step at the rate of a large product, over its time')
    print('| ' + ' | '.join(columns) + ' |')
    print('| --- | ---' + ' | ---:' * (len(columns) - 2) + ' |')
    version = ''
    for workload in args.workloads.split(','):
        best, share, version = measure(args, workload)
        for amp in args.amp.split(','):
            print(row(args, workload, amp, best, share), flush=True)
    print(f'{version}, {args.threads} threads, {args.rounds} rounds')


if __name__ == '__main__':
    main()
