"""The Python program of the top README works as printed."""
import re
from pathlib import Path
from typing import Any

import numpy as np
from halftone import amp, nn, optim


def test_the_snippet_trains() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    names: dict[str, Any] = {"amp": amp, "nn": nn, "optim": optim, "x": x, "y": np.array([0, 1, 1, 0])}
    exec(found[1], names)
    model, first = names["model"], float(names["loss"])
    assert isinstance(model, nn.Graph)
    for _ in range(199):
        loss = float(model(x, names["y"]))
    assert loss < 0.1 < first
