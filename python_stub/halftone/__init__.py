"""Halftone: deep learning with static graphs. Describe one step in nn.Graph.build; it is compiled."""
from halftone import amp, distributed, nn, optim
from halftone._halftone import (
    GraphFile,
    __version__,
    load_graph,
    num_threads,
    parse_graph,
    read_checkpoint,
    set_num_threads,
    write_checkpoint,
)

__all__ = [
    "GraphFile",
    "__version__",
    "amp",
    "distributed",
    "load_graph",
    "nn",
    "num_threads",
    "optim",
    "parse_graph",
    "read_checkpoint",
    "set_num_threads",
    "write_checkpoint",
]
