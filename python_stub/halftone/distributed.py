"""The processes of a job that train one model together."""
from halftone._halftone.distributed import (
    Sampler,
    barrier,
    init,
    is_initialized,
    local_rank,
    rank,
    size,
    sum,
)

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
