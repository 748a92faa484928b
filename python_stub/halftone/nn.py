"""Graphs, modules and the functions over their values."""
from halftone._halftone import nn as _nn
from halftone._halftone.nn import *

__all__ = sorted(name for name in vars(_nn) if not name.startswith("_"))
