"""The Python program of the top README works as printed."""
import re
from pathlib import Path
from typing import Any


def test_the_snippet_trains() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    losses = [float(loss) for loss in names["losses"]]
    assert len(losses) == 200
    assert losses[-1] < 0.1 < losses[0]
