"""Policies of mixed precision: files, levels, MXNet's lists, marks of values."""
from pathlib import Path

import numpy as np
import pytest
from halftone import amp, nn

X = np.ones((64, 64), np.float32)


class Marked(nn.Graph):
    """A linear layer, exp, another linear layer."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)
        self.mark = mark

    def build(self, x: nn.Value) -> nn.Value:
        h = nn.relu(self.a(x))
        if self.mark == "black":
            h = nn.amp_black(h)
        if self.mark == "input":
            nn.amp_white(x)
        return self.b(h)


def rows(graph: nn.Graph) -> dict[str, str]:
    graph.to("reference")
    graph(X)
    lines = graph.amp_table().splitlines()[1:-1]
    return {line.split()[0]: line.split()[1] for line in lines}


def test_marks_of_values() -> None:
    for mark, dtype in (("", "bf16"), ("black", "f32")):
        graph = Marked(mark)
        graph.config.enable_amp(dtype="bf16")
        assert rows(graph)["relu"] == dtype
    wrong = Marked("input")
    with pytest.raises(ValueError, match="amp_white: %in0 is computed by nothing"):
        wrong(X)


def test_levels() -> None:
    graph = Marked("")
    graph.config.enable_amp(policy=amp.Policy("bf16", level="only_matmul"))
    assert graph.config.amp_policy.level == "only_matmul"
    assert rows(graph)["relu"] == "f32"
    with pytest.raises(ValueError, match='level is "all"; expected balanced'):
        amp.Policy(level="all")


def test_files(tmp_path: Path) -> None:
    policy = amp.Policy("f16", deny=["head/*"], level="conservative", trim=False)
    path = str(tmp_path / "policy.txt")
    policy.write_file(path)
    assert amp.Policy.read_file(path) == policy
    assert amp.Policy.parse(str(policy)) == policy
    with pytest.raises(ValueError, match="line 2: allow \"exp\": line 1 has it under deny"):
        amp.Policy.parse("deny: \"exp\"\nallow: \"exp\"\n")
    with pytest.raises(ValueError, match="is not a regular file"):
        amp.Policy.read_file(str(tmp_path))


def test_lists_of_mxnet() -> None:
    policy = amp.Policy.from_lists(
        "f16",
        target_dtype_ops=["tanh"],
        fp32_ops=["softmax"],
        conditional_fp32_ops=[("leaky_relu", "negative_slope", ["0.25"])],
        excluded_names=["head/*"],
    )
    assert policy == amp.Policy(
        "f16", allow=["tanh"], deny=["softmax", "leaky_relu[negative_slope=0.25]", "head/*"]
    )
    with pytest.raises(ValueError, match="no op is called"):
        amp.Policy.from_lists(fp32_ops=["Convolution"])
