"""Optimizers against their formulas in double: the classes follow from descriptions, so one is as good as all."""
import numpy as np
import pytest
from halftone import nn, optim

STEPS = 8


class Weighted(nn.Graph):
    """One parameter, whose gradient is the input."""

    def __init__(self, alpha: float, momentum: float, centered: bool) -> None:
        super().__init__()
        self.w = nn.Parameter(np.array([0.5, -1.0, 2.0], np.float32))
        # Options by position, in PyTorch's order: lr, alpha, eps, weight_decay, momentum, centered.
        self.add_optimizer(optim.RMSprop([self.w], 0.1, alpha, 0.01, 0.25, momentum, centered))

    def build(self, gradient: nn.Value) -> nn.Value:
        loss = nn.sum(nn.mul(gradient, self.w))
        loss.backward()
        return loss


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop_follows_its_formula(momentum: float, centered: bool) -> None:
    alpha = 0.75
    graph = Weighted(alpha, momentum, centered)
    w = np.array([0.5, -1.0, 2.0])
    square, mean, buffer = np.zeros(3), np.zeros(3), np.zeros(3)
    for step in range(STEPS):
        gradient = np.array([1.0, -2.0, 0.5]) * np.sin(3.0 * step + 1)
        graph(gradient.astype(np.float32))
        g = gradient + 0.25 * w
        square = alpha * square + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g
        root = np.sqrt(square - mean * mean if centered else square)
        buffer = momentum * buffer + g / (root + 0.01)
        w = w - 0.1 * buffer
    state = graph.state_dict()
    np.testing.assert_allclose(state["w"], w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state["optimizer0.w.square_avg"], square, rtol=1e-4, atol=1e-6)
    assert ("optimizer0.w.grad_avg" in state) == centered
    assert ("optimizer0.w.momentum_buffer" in state) == (momentum > 0)


def test_defaults_and_errors() -> None:
    graph = Weighted(0.5, 0.0, False)
    assert optim.RMSprop([graph.w]).lr == 0.01
    assert optim.RMSprop([graph.w]).rule == "rmsprop"
    with pytest.raises(ValueError, match=r"RMSprop: alpha = 1; expected 0 <= alpha < 1"):
        optim.RMSprop([graph.w], alpha=1.0)


def test_options_of_the_others() -> None:
    a = nn.Parameter(np.array([1.0], np.float32))
    b = nn.Parameter(np.array([1.0], np.float32))
    groups = [{"params": [a]}, {"params": [b], "initial_accumulator_value": 12.0}]
    assert optim.Adagrad(groups, lr=1.0, eps=0.0).rule == "adagrad"
    with pytest.raises(ValueError, match=r"LAMB: eps = 0; expected a number > 0 that f32 can hold"):
        optim.LAMB([a], eps=0.0)
    with pytest.raises(ValueError, match=r"NAdam: beta1 = 1; expected 0 <= beta < 1"):
        optim.NAdam([a], betas=(1.0, 0.9))
    assert optim.Lion([a], 0.5, (0.5, 0.75), 0.25).lr == 0.5


def test_every_optimizer_is_offered() -> None:
    classes = {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Lion", "NAdam", "LAMB", "Optimizer"}
    assert classes <= set(vars(optim))
