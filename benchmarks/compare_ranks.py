#!/usr/bin/env python3
"""Times data parallel training steps of Halftone and of PyTorch's DistributedDataParallel (gloo) in turn, and prints how they compare.

Every round runs each program once, one after another; the best median of all rounds counts. Run it on a machine that does nothing else, with a
Python that has torch.
usage: compare_ranks.py [--build DIR] [--rounds N] [--ranks N] [--threads N] [--steps N] [--workloads a,b] [--shard]
"""
import argparse
import os
import sys

from compare import HERE, json_line

# Root and few cores, and copies through shared memory where one process may not read another's.
SETTINGS = ['env', 'OMPI_ALLOW_RUN_AS_ROOT=1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1', 'OMPI_MCA_rmaps_base_oversubscribe=1',
            'OMPI_MCA_hwloc_base_binding_policy=none', 'OMPI_MCA_btl_vader_single_copy_mechanism=none']
BATCHES = {'bert_base': 8, 'resnet50': 16}  # of all ranks together, as in torch_workloads.py


def measure(args, workload):
    """Best seconds of ours and of PyTorch's, the last results of both."""
    ours = SETTINGS + ['mpirun', '-n', str(args.ranks), os.path.join(args.build, 'benchmarks', 'scaling'), f'--workload={workload}',
                       f'--batch={BATCHES[workload]}', f'--threads={args.threads}', f'--steps={args.steps}']
    torch = [sys.executable, os.path.join(HERE, 'peers', 'torch_ddp.py'), '--only', workload, '--ranks', str(args.ranks), '--threads',
             str(args.threads), '--steps', str(args.steps)]
    if args.shard:
        ours.append('--shard_optimizer')
        torch.append('--zero')
    own_s = torch_s = float('inf')
    for _ in range(args.rounds):
        own = json_line(ours)
        peer = json_line(torch)
        if own['batch'] != peer['batch']:
            sys.exit(f'{workload}: batch {own["batch"]} here, {peer["batch"]} in PyTorch')
        own_s, torch_s = min(own_s, own['step_s']), min(torch_s, peer['step_s'])
    return own_s, torch_s, own, peer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--workloads', default='resnet50,bert_base', help='of ' + ', '.join(BATCHES))
    parser.add_argument('--shard', action='store_true', help='optimizer state shared out: shard_optimizer, ZeroRedundancyOptimizer')
    args = parser.parse_args()
    print('| workload, total batch | Halftone, s | PyTorch DDP, s | ratio | waited for, s |')
    print('| --- | ---: | ---: | ---: | ---: |')
    for workload in args.workloads.split(','):
        own_s, torch_s, own, peer = measure(args, workload)
        print(f'| {workload}, {own["batch"]} | {own_s:.3f} | {torch_s:.3f} | {torch_s / own_s:.2f} | {own["wait_s"]:.3f} |', flush=True)
    print(f'{args.ranks} ranks of {args.threads} threads, {peer["framework"]}')


if __name__ == '__main__':
    main()
