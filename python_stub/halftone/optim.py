"""Optimizers and learning-rate schedules."""
from halftone._halftone import optim as _optim

# All that the module offers: a class for every optimizer that C++ describes.
__all__ = sorted(name for name in vars(_optim) if not name.startswith("_"))
globals().update({name: getattr(_optim, name) for name in __all__})
