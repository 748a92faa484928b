"""Optimizers and learning-rate schedules."""
from halftone._halftone.optim import (
    SGD,
    Adam,
    AdamW,
    CosineLR,
    LinearWarmup,
    LRSchedule,
    Optimizer,
    StepLR,
)

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "CosineLR",
    "LRSchedule",
    "LinearWarmup",
    "Optimizer",
    "StepLR",
]
