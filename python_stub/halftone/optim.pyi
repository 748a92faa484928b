"""Optimizers and learning-rate schedules."""
from collections.abc import Iterable, Mapping
from typing import Any, Union, final

from halftone.nn import Parameter

# Parameters, or groups as in PyTorch: dicts of "params" and the options that are different for them.
_Params = Iterable[Union[Parameter, Mapping[str, Any]]]

@final
class LRSchedule:
    """Maps the base learning rate and the number of applied steps to the rate of the next step."""

    def at(self, base_lr: float, applied_steps: int) -> float: ...
    def __mul__(self, arg0: LRSchedule) -> LRSchedule: ...

def StepLR(step_size: int, gamma: float = 0.1) -> LRSchedule: ...
def CosineLR(t_max: int, eta_min: float = 0.0) -> LRSchedule: ...
def LinearWarmup(steps: int, start_factor: float = 0.3333333333333333) -> LRSchedule: ...

class Optimizer:
    @property
    def rule(self) -> str: ...
    @property
    def lr(self) -> float: ...

@final
class SGD(Optimizer):
    def __init__(
        self,
        params: _Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        lr_schedule: LRSchedule = ...,
        clip_norm: float = 0.0,
        clip_value: float = 0.0,
        scaler: str = "",
        skip: str = "own",
        skip_nonfinite: bool = False,
    ) -> None: ...

@final
class Adam(Optimizer):
    def __init__(
        self,
        params: _Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        lr_schedule: LRSchedule = ...,
        clip_norm: float = 0.0,
        clip_value: float = 0.0,
        scaler: str = "",
        skip: str = "own",
        skip_nonfinite: bool = False,
    ) -> None: ...

@final
class AdamW(Optimizer):
    def __init__(
        self,
        params: _Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        lr_schedule: LRSchedule = ...,
        clip_norm: float = 0.0,
        clip_value: float = 0.0,
        scaler: str = "",
        skip: str = "own",
        skip_nonfinite: bool = False,
    ) -> None: ...
