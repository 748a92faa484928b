"""Mixed precision: what a graph is told about it."""
from collections.abc import Sequence
from typing import Optional, Tuple, Union, final

from numpy.typing import DTypeLike

from halftone import GraphFile

__all__ = ["GradScaler", "Policy", "StaticGradScaler", "convert_model", "remove_casts"]

def convert_model(
    model: GraphFile,
    dtype: Union[None, str, DTypeLike] = None,
    *,
    policy: Optional[Policy] = None,
    cast_parameters: bool = False,
) -> GraphFile:
    """A trained model for inference in 16 bit."""

def remove_casts(model: GraphFile) -> GraphFile:
    """What convert_model has inserted, taken out."""

@final
class Policy:
    """What mixed precision shall do differently: op types or node-path patterns by class."""

    def __init__(
        self,
        dtype: Union[None, str, DTypeLike] = None,
        *,
        allow: Sequence[str] = [],
        infer: Sequence[str] = [],
        clear: Sequence[str] = [],
        deny: Sequence[str] = [],
        low_outputs: bool = False,
        trim: bool = True,
        level: str = "balanced",
    ) -> None: ...
    @staticmethod
    def from_lists(
        dtype: Union[None, str, DTypeLike] = None,
        *,
        target_dtype_ops: Sequence[str] = [],
        fp32_ops: Sequence[str] = [],
        conditional_fp32_ops: Sequence[Tuple[str, str, Sequence[str]]] = [],
        excluded_names: Sequence[str] = [],
    ) -> Policy: ...
    @property
    def level(self) -> str: ...
    def write_file(self, path: str) -> None: ...
    @staticmethod
    def parse(text: str) -> Policy: ...
    @staticmethod
    def read_file(path: str) -> Policy: ...
    def __eq__(self, other: object) -> bool: ...

@final
class GradScaler:
    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
        *,
        dynamic: bool = True,
        min_scale: float = 1.0,
        max_scale: float = 3.4028234663852886e38,
        hysteresis: int = 1,
        max_consecutive_skips: int = 0,
    ) -> None: ...
    def is_enabled(self) -> bool: ...
    def state_dict(self) -> dict[str, float]: ...
    def load_state_dict(self, state: dict[str, float]) -> None: ...

def StaticGradScaler(scale: float) -> GradScaler: ...
