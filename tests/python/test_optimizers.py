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
    grouped = optim.Adagrad(
        [{"params": [a]}, {"params": [b], "initial_accumulator_value": 12.0}], lr=1.0, eps=0.0
    )
    assert grouped.rule == "adagrad"
    with pytest.raises(ValueError, match=r"LAMB: eps = 0; expected a number > 0 that f32 can hold"):
        optim.LAMB([a], eps=0.0)
    with pytest.raises(ValueError, match=r"NAdam: beta1 = 1; expected 0 <= beta < 1"):
        optim.NAdam([a], betas=(1.0, 0.9))
    assert optim.Lion([a], 0.5, (0.5, 0.75), 0.25).lr == 0.5


def test_every_optimizer_is_offered() -> None:
    classes = {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Lion", "NAdam", "LAMB", "Optimizer"}
    assert classes <= set(vars(optim))


def test_schedules_are_pytorchs() -> None:
    # torch 2.15, base rate 0.1, the first steps.
    restarts = optim.CosineAnnealingWarmRestarts(T_0=3, T_mult=2, eta_min=0.01)
    rates = [restarts.at(0.1, t) for t in range(6)]
    np.testing.assert_allclose(rates, [0.1, 0.0775, 0.0325, 0.1, 0.093971143, 0.0775], rtol=1e-7)
    polynomial = optim.PolynomialLR(30, power=2.0)
    assert polynomial.at(0.1, 1) == pytest.approx(0.093444444, rel=1e-7)
    one = optim.OneCycleLR(0.5, 34, pct_start=0.4, anneal_strategy="linear", div_factor=10.0)
    assert one.at(7.0, 1) == pytest.approx(0.085714286, rel=1e-7)
    assert repr(one) == "onecycle(0.5,34,0.4,1,10)"
    with pytest.raises(ValueError, match="anneal_strategy is \"poly\"; expected cos or linear"):
        optim.OneCycleLR(0.5, 34, anneal_strategy="poly")
    with pytest.raises(ValueError, match="PolynomialLR: total_iters = 0; expected > 0"):
        optim.PolynomialLR(0)


class Averaged(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(np.array([0.5, -1.0], np.float32))
        self.optimizer = self.add_optimizer(
            optim.SGD([self.w], lr=0.25, ema=optim.Ema(decay=0.75))
        )
        self.plateau = self.add_plateau(
            self.optimizer, optim.ReduceLROnPlateau("min", factor=0.5, patience=1)
        )

    def build(self, gradient: nn.Value) -> nn.Value:
        loss = nn.sum(nn.mul(gradient, self.w))
        loss.backward()
        return loss


def test_averages_stand_in_for_parameters() -> None:
    graph = Averaged()
    w = np.array([0.5, -1.0])
    average = np.zeros_like(w)
    ema = optim.Ema(decay=0.75)
    for step in range(1, 6):
        gradient = np.array([1.0, -0.5]) * step
        graph(gradient.astype(np.float32))
        w = w - 0.25 * gradient
        average = ema.decay_at(step) * average + (1 - ema.decay_at(step)) * w
    one = np.ones(2, np.float32)
    with nn.EmaScope(graph):
        graph.eval()
        np.testing.assert_allclose(graph(one), average.sum(), rtol=1e-6)
        np.testing.assert_allclose(graph.state_dict()["w"], average, rtol=1e-6)
        graph.train()
        with pytest.raises(RuntimeError, match="a training step while an EmaScope lives"):
            graph(one)
        with pytest.raises(RuntimeError, match="an EmaScope lives already"):
            with nn.EmaScope(graph):
                pass
    np.testing.assert_allclose(graph.state_dict()["w"], w, rtol=1e-6)
    np.testing.assert_allclose(graph.state_dict()["optimizer0.w.ema"], average, rtol=1e-6)
    late = optim.Ema(0.5, 0.25, 3, True, 2.0, 0.75)
    assert (late.decay, late.min_decay, late.update_after_step) == (0.5, 0.25, 3)
    assert (late.use_warmup, late.warmup_gamma, late.warmup_power) == (True, 2.0, 0.75)
    with pytest.raises(ValueError, match=r"Ema: decay = 2; expected 0\.\.1"):
        optim.Ema(2.0)
    with pytest.raises(TypeError, match="EmaScope: not a Graph"):
        nn.EmaScope(3)  # type: ignore[arg-type]


def test_rates_follow_a_metric() -> None:
    graph, other = Averaged(), Averaged()
    assert [graph.plateau.step(metric) for metric in (3.0, 3.5, 3.25, 3.0)] == [
        False,
        False,
        True,
        False,
    ]
    assert graph.optimizer.lr == 0.125
    other.load_state_dict(graph.state_dict())
    assert other.plateau.best == 3.0
    assert other.plateau.num_bad_epochs == graph.plateau.num_bad_epochs == 1
    with pytest.raises(ValueError, match='mode is "low"; expected min or max'):
        optim.ReduceLROnPlateau("low")
    with pytest.raises(ValueError, match="factor = 1; expected 0 <= factor < 1"):
        optim.ReduceLROnPlateau(factor=1.0)
