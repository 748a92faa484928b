"""Trains a small classifier on all processes that mpirun has started, each on its part of every batch.

mpirun -n 2 python3 train_distributed.py [--shard]

--shard: each process keeps the optimizer's state of some of the parameters alone; the losses are the same.
"""

import sys

import numpy as np
from halftone import distributed, nn, optim
from numpy.typing import NDArray

BATCH, EPOCHS, SAMPLES = 32, 12, 1024  # of all ranks together


class Classifier(nn.Graph):
    def __init__(self, shard: bool) -> None:
        super().__init__()
        self.fc1 = nn.Linear(8, 32)
        self.fc2 = nn.Linear(32, 4)
        self.optimizer = self.add_optimizer(optim.Adam(self.parameters(), lr=1e-2))
        self.config.data_parallel(shard_optimizer=shard)

    def build(self, x: nn.Value, y: nn.Value) -> nn.Value:
        loss = nn.cross_entropy(self.fc2(nn.tanh(self.fc1(x))), y)
        loss.backward()
        return loss


def samples() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Points of 8 numbers; the class is the largest of the first four."""
    random = np.random.default_rng(0)
    x = random.standard_normal((SAMPLES, 8)).astype(np.float32)
    return x, np.argmax(x[:, :4], axis=1)


def main() -> int:
    distributed.init()
    ranks = distributed.size()
    x, y = samples()
    order = distributed.Sampler(len(x), BATCH // ranks, tail="drop")
    model = Classifier(shard="--shard" in sys.argv[1:])
    loss = 0.0
    for epoch in range(EPOCHS):
        order.set_epoch(epoch)
        losses = [float(model(x[own], y[own])) for own in order]
        # Of all ranks: each has seen its part.
        loss = distributed.sum(sum(losses) / len(losses)) / ranks
        if distributed.rank() == 0:
            print(f"epoch {epoch + 1}: loss {loss:.9f}")
    return 0 if loss < 0.2 else 1


if __name__ == "__main__":
    sys.exit(main())
