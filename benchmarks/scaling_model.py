"""Step times of data parallel training on 1 to 4,096 ranks, by a model of three numbers a machine.

A rank computes for `compute` seconds, of which the last `last` bytes of gradients are left for the end.
Each byte of gradients costs 2 (n - 1) / n bytes on the way out, each bucket 2 (n - 1) messages
(distributed/all_reduce.h). What is exchanged while backward goes on, two thirds of the compute time, is hidden.

python3 benchmarks/scaling_model.py --compute 5.1 --mib 97.5 --last-mib 8.3 --buckets 5
"""
import argparse
from dataclasses import dataclass

# Latency of a message in seconds, and bytes a second out of a machine: datasheets, rounded.
NETWORKS = {
    "10 Gbit Ethernet, TCP": (30e-6, 1.1e9),
    "100 Gbit Ethernet, RoCE": (4e-6, 11e9),
    "InfiniBand HDR 200": (1.5e-6, 23e9),
}
RANKS = (1, 2, 4, 8, 16, 64, 256, 1024, 4096)


@dataclass
class Job:
    compute: float  # seconds of a step on one rank
    mib: float  # of all gradients on the wire
    last_mib: float  # of the bucket that backward completes last
    buckets: int


def exchange_seconds(mib: float, buckets: int, ranks: int, latency: float, rate: float) -> float:
    """Of buckets that travel one behind the other."""
    messages = 2 * (ranks - 1) * buckets
    return messages * latency + 2 * (ranks - 1) / ranks * mib * 2**20 / rate


def step_seconds(job: Job, ranks: int, latency: float, rate: float) -> float:
    """What backward does not hide comes behind it: the last bucket, or more if the network is behind."""
    if ranks == 1:
        return job.compute
    whole = exchange_seconds(job.mib, job.buckets, ranks, latency, rate)
    last = exchange_seconds(job.last_mib, 1, ranks, latency, rate)
    hidden = min(whole - last, job.compute * 2 / 3)
    return job.compute + whole - hidden


def table(job: Job) -> str:
    lines = ["| ranks | " + " | ".join(NETWORKS) + " |", "| --- |" + " --- |" * len(NETWORKS)]
    for ranks in RANKS:
        cells = []
        for latency, rate in NETWORKS.values():
            seconds = step_seconds(job, ranks, latency, rate)
            cells.append(f"{seconds:.3f} s, {job.compute / seconds:.3f}")
        lines.append(f"| {ranks} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compute", type=float, required=True, help="seconds of a step on one rank")
    parser.add_argument("--mib", type=float, required=True, help="of all gradients")
    parser.add_argument("--last-mib", type=float, required=True, help="of the last bucket")
    parser.add_argument("--buckets", type=int, required=True)
    print(table(Job(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
