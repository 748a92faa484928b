"""Mixed precision: what a graph is told about it."""
from halftone._halftone.amp import GradScaler, Policy, convert_model, remove_casts

__all__ = ["GradScaler", "Policy", "StaticGradScaler", "convert_model", "remove_casts"]


def StaticGradScaler(scale: float) -> GradScaler:
    """A scaler whose scale never changes; OneFlow's name for GradScaler(scale, dynamic=False)."""
    return GradScaler(scale, dynamic=False)
