"""Parameters that their optimizer keeps in bf16."""
from pathlib import Path

import numpy as np
import pytest
from halftone import nn, optim
from models import Array

STEP, UNIT = 2.0**-10, 2.0**-7  # a step, and the distance of bf16's numbers between 1 and 2


class Slow(nn.Graph):
    """The input is the gradient of w, which starts at 1."""

    def __init__(self, weights: str, size: int = 1000) -> None:
        super().__init__()
        self.w = nn.Parameter(np.ones(size, np.float32))
        self.optimizer = self.add_optimizer(optim.SGD([self.w], lr=STEP, weights=weights))

    def build(self, dw: nn.Value) -> nn.Value:
        loss = nn.sum(nn.mul(dw, self.w))
        loss.backward()
        return loss

    def steps(self, count: int) -> Array:
        gradient = np.full(self.w.shape, -1, np.float32)
        for _ in range(count):
            self(gradient)
        return self.state_dict()["w"]


def test_small_steps_add_up() -> None:
    assert (Slow("declared").steps(64) == 1 + 64 * STEP).all()
    assert (Slow("bf16_kahan").steps(64) == 1 + 64 * STEP).all()
    w = Slow("bf16_stochastic").steps(64)
    share = STEP / UNIT
    deviation = UNIT * np.sqrt(64 * share * (1 - share) / w.size)
    assert abs(w.mean() - (1 + 64 * STEP)) < 5 * deviation
    assert len(np.unique(w)) > 5


@pytest.mark.parametrize("weights", ["bf16_stochastic", "bf16_kahan"])
def test_a_checkpoint_resumes_bit_for_bit(weights: str, tmp_path: Path) -> None:
    whole, begun, resumed = Slow(weights), Slow(weights), Slow(weights)
    expected = whole.steps(20)
    begun.steps(10)
    begun.save_checkpoint(str(tmp_path / "run"))
    resumed.load_checkpoint(str(tmp_path / "run"))
    np.testing.assert_array_equal(resumed.steps(10), expected)
    # Arrays of NumPy show bf16 as f32, so they come back converted.
    again = Slow(weights)
    again.load_state_dict(begun.state_dict(), convert=True)
    np.testing.assert_array_equal(again.steps(10), expected)


def test_what_does_not_compose_is_an_error() -> None:
    w = nn.Parameter(np.ones(2, np.float32))
    with pytest.raises(ValueError, match='weights is "f16"; expected declared, bf16_stochastic or'):
        optim.SGD([w], weights="f16")
    with pytest.raises(ValueError, match="SGD: ema with weights = bf16_stochastic"):
        optim.SGD([w], weights="bf16_stochastic", ema=optim.Ema())


def test_parameters_of_a_module_written_in_python() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(np.ones(4, np.float32))

        def forward(self, x: nn.Value) -> nn.Value:
            return nn.mul(x, self.w)

    class Two(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.both = nn.Sequential(Scale())
            last = Scale()
            self.add_module("last", last)
            self.calls = (self.both, last)
            self.optimizer = self.add_optimizer(optim.SGD(self.parameters(), lr=0.5, weights="bf16_kahan"))

        def build(self, x: nn.Value) -> nn.Value:
            for module in self.calls:
                x = module(x)
            loss = nn.sum(x)
            loss.backward()
            return loss

    graph = Two()
    graph(np.ones(4, np.float32))
    for name in ("both.0.w", "last.w"):  # each gradient is 1
        np.testing.assert_array_equal(graph.state_dict()[name], np.full(4, 0.5, np.float32))
