"""The processes of a job that train one model together."""
from collections.abc import Iterator
from typing import Optional, final

from numpy import int64
from numpy.typing import NDArray

__all__ = [
    "Sampler",
    "barrier",
    "init",
    "is_initialized",
    "local_rank",
    "rank",
    "size",
    "sum",
]

def init(*, timeout_seconds: float = 300.0) -> None:
    """Joins the job that mpirun or Slurm has started this process in."""

def is_initialized() -> bool: ...
def rank() -> int: ...
def size() -> int: ...
def local_rank() -> int: ...
def sum(own: float) -> float:
    """The sum of a number over the ranks, the same on all."""

def barrier() -> None: ...
@final
class Sampler:
    """Which samples of a data set this rank takes in each step of an epoch."""

    def __init__(
        self,
        count: int,
        batch: int = 1,
        *,
        shuffle: bool = True,
        seed: int = 0,
        tail: str = "drop",
        rank: Optional[int] = None,
        ranks: Optional[int] = None,
    ) -> None: ...
    def set_epoch(self, epoch: int) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[NDArray[int64]]: ...
    def __getitem__(self, step: int) -> NDArray[int64]: ...
