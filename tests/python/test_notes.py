"""What a graph says of itself."""
import subprocess
import sys

import numpy as np
import pytest
from halftone import nn
from models import Mlp

X = np.ones((2, 3))  # NumPy's default is float64


class Layer(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def build(self, x: nn.Value) -> nn.Value:
        return nn.sum(nn.exp(x)) * 2.0


def test_f13_an_input_in_float64() -> None:
    graph = Layer()
    graph.config.enable_amp(dtype="bf16")
    graph(X)
    (note,) = graph.notes()
    assert note.startswith("input 0 is f64[2,3]: ") and "reference kernels" in note
    assert "mixed precision leaves them alone" in note and "astype(numpy.float32)" in note
    plain = Layer()
    plain(X.astype(np.float32))
    assert plain.notes() == []


@pytest.mark.parametrize("setting,lines", [(None, 1), ("0", 0)])
def test_standard_error_has_the_first_of_a_kind(setting: str, lines: int) -> None:
    program = """
import numpy as np
from halftone import nn
class Graph(nn.Graph):
    def build(self, x):
        y = nn.sum(nn.exp(x))
        y.backward()
        return y
for _ in range(2):
    Graph()(np.ones(3, np.float32))
"""
    env = {"PYTHONPATH": ":".join(sys.path)}
    if setting is not None:
        env["HALFTONE_NOTES"] = setting
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr.count("backward() has no effect") == lines


def test_a_graph_that_trains_has_nothing_to_say() -> None:
    graph = Mlp()
    graph(np.ones((2, 3), np.float32), np.array([0, 1]))
    assert graph.notes() == []
