"""Where infinities began, and how gradients fit f16, in Python."""
import math

import numpy as np
import pytest
from halftone import amp, nn, optim
from models import Array


def full(value: float) -> Array:
    return np.full(4, value, np.float32)


class Product(nn.Graph):
    """x * w * factor in f16, where w is 1 at first."""

    def __init__(self, **scaler: float) -> None:
        super().__init__()
        self.w = nn.Parameter(full(1))
        self.optimizer = self.add_optimizer(optim.SGD(self.parameters(), lr=1))
        self.scaler = self.set_grad_scaler(amp.GradScaler(**scaler))  # type: ignore[arg-type]
        self.config.enable_amp(dtype="f16", policy=amp.Policy(allow=["mul", "mul_1"]))

    def build(self, x: nn.Value, factor: nn.Value) -> nn.Value:
        loss = nn.sum(nn.relu(x * self.w * factor))
        loss.backward()
        return loss


def test_the_first_nonfinite_node() -> None:
    graph = Product(init_scale=1.0)
    found = graph.first_nonfinite_node(full(300), full(300))
    assert found is not None
    assert (found.kind, found.node, found.op) == ("computed", "mul_1", "mul")
    assert (found.type, found.gradient_of, found.output) == ("f16[4]", "", 0)
    assert found.module == "" and "test_nonfinite.py" in found.location
    assert found.why.startswith("f16: ")
    assert found.range.non_finite == 4 and found.range.nans == 0
    assert [operand.range.largest for operand in found.operands] == [300, 300]
    assert [operand.type for operand in found.operands] == ["f16[4]", "f16[4]"]
    assert found.scales == {"scaler0": 1}
    assert str(found).startswith("%mul_1 (mul) f16[4] at ")
    assert graph.first_nonfinite_node(full(1), full(1)) is None
    assert graph.run_count == 0


def test_the_scale_of_a_skipped_step_and_an_input() -> None:
    graph = Product(init_scale=65536.0)
    graph(full(1), full(1.5))
    assert graph.last_step_skipped() and graph.scaler.scale == 32768
    found = graph.first_nonfinite_node(full(1), full(1.5))
    assert found is not None and found.gradient_of != "" and found.scales == {"scaler0": 65536}
    found = graph.first_nonfinite_node(full(math.nan), full(1.5))
    assert found is not None and (found.kind, found.node) == ("input", "in0")


def test_too_many_skips_name_the_node() -> None:
    graph = Product(init_scale=1.0, dynamic=False, max_consecutive_skips=1)
    graph(full(300), full(300))
    with pytest.raises(RuntimeError, match=r"first non-finite value: %mul_1 \(mul\) f16\[4\] at"):
        graph(full(300), full(300))


def test_scale_history() -> None:
    graph = Product(init_scale=65536.0, growth_interval=1)
    graph(full(1), full(1.5))
    graph.scaler.scale = 4.0
    graph(full(1), full(1.5))
    changes = [(c.step, c.before, c.after, c.cause) for c in graph.scaler.scale_history]
    assert changes == [(1, 65536, 32768, "overflow"), (1, 32768, 4, "set"), (2, 4, 8, "growth")]
    assert repr(graph.scaler.scale_history[0]) == (
        "ScaleChange(step=1, before=65536, after=32768, cause='overflow')"
    )


def test_measured_gradients() -> None:
    graph = Product(init_scale=1024.0)
    x = np.array([1, 2.0**-26, 2.0**-40, 0], np.float32)
    report = graph.scaler.measure_gradients(x, full(1))
    assert report.scale == 1024
    # The largest f16 gradient is 1 times the scale; 32,752 is half of f16's range.
    assert report.suggested_scale == 16384
    (fit,) = report.parameters
    assert (fit.parameter, fit.largest, fit.elements) == ("w", 1, 4)
    assert fit.zeros == 1 and fit.non_finite == 0
    assert fit.vanishing_share == pytest.approx(1 / 3)
    assert fit.subnormal_share == pytest.approx(1 / 3)
    graph.eval()
    with pytest.raises(RuntimeError, match="expected train"):
        graph.scaler.measure_gradients(x, full(1))
