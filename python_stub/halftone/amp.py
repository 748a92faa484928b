"""Mixed precision: what a graph is told about it."""
from halftone._halftone.amp import GradScaler, Policy

__all__ = ["GradScaler", "Policy"]
