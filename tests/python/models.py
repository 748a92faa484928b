"""Graphs that several tests use."""
from typing import Any, Optional

import numpy as np
from halftone import nn, optim
from numpy.typing import NDArray

Array = NDArray[Any]


class Mlp(nn.Graph):
    """3 -> 4 -> 2 with a relu between; returns loss and logits."""

    def __init__(self, optimizer: Optional[str] = "sgd", lr: float = 0.1) -> None:
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.fc2 = nn.Linear(4, 2)
        if optimizer == "sgd":
            self.optimizer = self.add_optimizer(optim.SGD(self.parameters(), lr=lr))
        elif optimizer == "adam":
            self.optimizer = self.add_optimizer(optim.Adam(self.parameters(), lr=lr))

    def build(self, x: nn.Value, y: nn.Value) -> tuple[nn.Value, nn.Value]:
        logits = self.fc2(nn.relu(self.fc1(x)))
        loss = nn.cross_entropy(logits, y)
        loss.backward()
        return loss, logits


def batch(rows: int = 5, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((rows, 3)).astype(np.float32),
        rng.integers(0, 2, rows),
    )
