#!/usr/bin/env python3
"""Training-step times of the reference workloads under PyTorch's DistributedDataParallel: the twin of benchmarks/scaling.

usage: torch_ddp.py --only NAME [--ranks N] [--threads N] [--steps N] [--zero]
Processes of this machine exchange gradients by gloo on 127.0.0.1; each takes its part of the workload's batch, so all together take the
whole one. Prints one JSON line: the median seconds of a step (forward, backward, optimizer) of the first rank. --zero: the optimizer is
a ZeroRedundancyOptimizer, the twin of scaling --shard_optimizer.
"""
import argparse, json, os, socket
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch_workloads import time_cpu, workloads


def own_part(t, rank, ranks):
    """Of rows of all ranks' samples, one rank's behind the other's."""
    count = t.shape[0] // ranks
    return t[rank * count:(rank + 1) * count]


def sharded(make_opt):
    """A maker of the same optimizer whose state ranks share out."""
    def make(params):
        params = list(params)
        one = make_opt(params)
        return ZeroRedundancyOptimizer(params, optimizer_class=type(one), **one.defaults)
    return make


def run(rank, a, port):
    torch.set_num_threads(a.threads)
    os.environ['GLOO_SOCKET_IFNAME'] = 'lo'
    dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{port}', rank=rank, world_size=a.ranks)
    for name, make, data, loss_fn, make_opt, steps in workloads(fused=True):
        if name != a.only: continue
        torch.manual_seed(0)
        model = DistributedDataParallel(make(), gradient_as_bucket_view=True)
        x, y = data()
        batch = x.shape[0]
        x, y = own_part(x, rank, a.ranks), own_part(y, rank, a.ranks)
        opt = (sharded(make_opt) if a.zero else make_opt)(model.parameters())

        def step():
            opt.zero_grad(set_to_none=True)
            loss_fn(model(x), y).backward()
            opt.step()
        for _ in range(2): step()
        times = time_cpu(step, a.steps or steps)
        if rank == 0:
            print(json.dumps(dict(name=name, framework='torch ' + torch.__version__, ranks=a.ranks, threads=a.threads, batch=batch, zero=a.zero,
                                  **{k: round(v, 6) for k, v in times.items()})), flush=True)
    dist.destroy_process_group()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--only', required=True); ap.add_argument('--ranks', type=int, default=2)
    ap.add_argument('--threads', type=int, default=1); ap.add_argument('--steps', type=int); ap.add_argument('--zero', action='store_true')
    a = ap.parse_args()
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    mp.spawn(run, (a, port), nprocs=a.ranks)


if __name__ == '__main__':
    main()
