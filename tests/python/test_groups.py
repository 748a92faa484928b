"""Parameter groups as PyTorch's list of dicts, clipping over all, steps that are not finite."""
from typing import Any, Callable, Optional

import numpy as np
import pytest
from halftone import amp, nn, optim
from models import Array, Mlp, batch


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


class Two(nn.Graph):
    """Parameters w and b; the inputs are their gradients."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.w = nn.Parameter(f32(start))
        self.b = nn.Parameter(f32(start))

    def build(self, dw: nn.Value, db: nn.Value) -> nn.Value:
        loss = nn.sum(nn.mul(dw, self.w)) + nn.sum(nn.mul(db, self.b))
        loss.backward()
        return loss

    def values(self) -> list[float]:
        state = self.state_dict()
        return [float(state["w"][0]), float(state["b"][0])]


@pytest.mark.parametrize("scaler", [None, 1024.0])
@pytest.mark.parametrize("start, expected", [(0.0, [-0.6, -0.8]), (1.0, [0.3, 0.2])])
def test_f01_one_norm_over_groups(
    scaler: Optional[float], start: float, expected: list[float]
) -> None:
    graph = Two(start)
    groups: list[dict[str, Any]] = [{"params": [graph.w], "weight_decay": 0.1}, {"params": [graph.b]}]
    optimizer = graph.add_optimizer(optim.SGD(groups, lr=1.0, clip_norm=1.0))
    if scaler is not None:
        graph.set_grad_scaler(amp.GradScaler(init_scale=scaler))
    graph(f32(3), f32(4))
    np.testing.assert_allclose(graph.values(), expected, atol=1e-6)
    assert optimizer.grad_norm == 5


def test_f01_one_norm_over_optimizers() -> None:
    graph = Two(1.0)
    first = graph.add_optimizer(optim.SGD([graph.w], lr=1.0, weight_decay=0.1))
    graph.add_optimizer(optim.SGD([graph.b], lr=1.0))
    graph.config.clip_grad_norm = 1.0
    graph(f32(3), f32(4))
    np.testing.assert_allclose(graph.values(), [0.3, 0.2], atol=1e-6)
    assert first.grad_norm == 3 and graph.grad_norm == 5


def test_options_schedule_and_rate_of_each_group() -> None:
    graph = Two()
    groups: list[dict[str, Any]] = [
        {"params": [graph.w], "lr": 8, "lr_schedule": optim.StepLR(1, 0.5), "clip_value": 1.0},
        {"params": [graph.b]},
    ]
    optimizer = graph.add_optimizer(optim.SGD(groups, lr=1.0), lr_sch=optim.StepLR(2, 0.25))
    assert [group.parameters for group in optimizer.groups] == [["w"], ["b"]]
    assert [group.lr for group in optimizer.groups] == [8, 1] and optimizer.lr == 8
    for _ in range(4):
        graph(f32(5), f32(1))
    # 8 + 4 + 2 + 1; 1 + 1 + 0.25 + 0.25.
    assert graph.values() == [-15, -2.5] and optimizer.applied_steps == 4
    optimizer.groups[1].lr = 0
    optimizer.groups[0].lr = 16
    graph(f32(5), f32(1))
    assert graph.values() == [-16, -2.5]
    optimizer.lr = 2  # of all
    assert [group.lr for group in optimizer.groups] == [2, 2]
    for rate in (1e39, -1.0, float("nan")):
        with pytest.raises(ValueError, match="expected a number >= 0 that is finite in f32"):
            optimizer.groups[1].lr = rate


def test_f65_rates_are_finite_in_f32() -> None:
    graph = Mlp()
    with pytest.raises(ValueError, match=r"lr = 1e\+39; expected a number >= 0 that is finite"):
        graph.optimizer.lr = 1e39
    assert graph.optimizer.lr == pytest.approx(0.1)
    with pytest.raises(ValueError, match=r"SGD: lr = 1e\+39"):
        optim.SGD(graph.parameters(), lr=1e39)


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW])
def test_adam_of_groups(make: Callable[..., optim.Optimizer]) -> None:
    graph = Two()
    groups: list[dict[str, Any]] = [{"params": [graph.w], "betas": (0.5, 0.75)}, {"params": [graph.b], "eps": 1.0}]
    graph.add_optimizer(make(groups, lr=0.5))
    graph(f32(2), f32(2))
    state = graph.state_dict()
    assert state["optimizer0.w.exp_avg"] == 1 and state["optimizer0.w.exp_avg_sq"] == 1
    # The first step of Adam is lr * g / (|g| + eps).
    np.testing.assert_allclose(graph.values(), [-0.5, -0.5 * 2 / 3], atol=1e-6)


def test_split_parameters() -> None:
    graph = Mlp(None)
    biases, weights = graph.split_parameters(["*.bias"])
    optimizer = graph.add_optimizer(
        optim.AdamW([{"params": weights}, {"params": biases, "weight_decay": 0.0}])
    )
    assert optimizer.groups[0].parameters == ["fc1.weight", "fc2.weight"]
    assert optimizer.groups[1].parameters == ["fc1.bias", "fc2.bias"]
    graph(*batch())
    first, rest = graph.split_parameters(lambda name, p: name.startswith("fc1") and len(p.shape) == 2)
    assert len(first) == 1 and len(rest) == 3
    with pytest.raises(ValueError, match='"norm.*" matches no parameter; known: fc1.weight'):
        Mlp(None).split_parameters(["norm.*"])
    with pytest.raises(TypeError, match="got a str; expected a list of patterns"):
        graph.split_parameters("*.bias")
    with pytest.raises(ZeroDivisionError):
        graph.split_parameters(lambda name, p: bool(1 // 0))


def test_f23_a_parameter_listed_twice_counts_once() -> None:
    graph = Two()
    graph.add_optimizer(optim.SGD([graph.w, graph.b, graph.w], lr=1.0))
    graph(f32(1), f32(1))
    assert graph.values() == [-1, -1]


def test_f35_f16_parameters_are_refused() -> None:
    graph = Two()
    half = nn.Parameter(np.zeros(2, np.float16))
    graph.half = half
    with pytest.raises(ValueError, match=r'parameter "half" is f16\[2\]; expected f32 or f64'):
        graph.add_optimizer(optim.SGD([half]))


def test_f37_a_step_that_is_not_finite() -> None:
    for skip in (False, True):
        graph = Two()
        optimizer = graph.add_optimizer(
            optim.SGD([graph.w, graph.b], lr=1.0, clip_norm=1.0, skip_nonfinite=skip)
        )
        graph(f32(np.inf), f32(4))
        assert graph.values() == ([0.0, 0.0] if skip else [-np.inf, -4.0])
        assert optimizer.last_step_skipped is skip


def test_unused_parameters_stay() -> None:
    graph = Mlp(None)
    graph.extra = nn.Parameter(f32(3))
    graph.add_optimizer(optim.SGD(graph.parameters(), lr=1.0, weight_decay=0.5))
    graph(*batch())
    assert graph.state_dict()["extra"] == 3
    assert graph.notes() == ['optimizer0: build() does not use "extra"; it stays as it is']


@pytest.mark.parametrize(
    "groups, error, text",
    [
        ([{"lr": 1.0}], ValueError, "group 0: params is missing"),
        ([{"params": [], "lr": 1.0}], ValueError, "no parameters"),
        ([{"params": 3}], TypeError, "group 0: params: got int; expected a list of parameters"),
        (
            [{"params": [], "mom": 1.0}],
            ValueError,
            'group 0: unknown key "mom"; expected betas, clip_value, eps, lr, lr_schedule, params, '
            "weight_decay",
        ),
        ([{"params": [], "lr": "x"}], TypeError, "group 0: lr: got str"),
        ([1], TypeError, 'got int; expected parameters, or dicts with "params"'),
    ],
)
def test_mistakes_in_groups(groups: list[Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        optim.Adam(groups)


def test_parameters_beside_groups_and_in_two() -> None:
    graph = Two()
    mixed: list[Any] = [graph.w, {"params": [graph.b]}]
    with pytest.raises(TypeError, match="parameters beside groups; expected one of them"):
        optim.SGD(mixed)
    with pytest.raises(ValueError, match='"w" is already changed by group 0 of optimizer0'):
        graph.add_optimizer(optim.SGD([{"params": [graph.w]}, {"params": [graph.w, graph.b]}]))
