"""Grad scalers, several losses, casts and configurations that change, in Python."""
import math

import numpy as np
import pytest
from halftone import amp, nn, optim
from models import Array, Mlp, batch


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


class Probe(nn.Graph):
    """A parameter w, 1 at first, with the loss sum(w * c): its gradient is c."""

    def __init__(self, **scaler: float) -> None:
        super().__init__()
        self.w = nn.Parameter(f32(1))
        self.optimizer = self.add_optimizer(optim.SGD(self.parameters(), lr=1))
        if scaler:
            self.scaler = self.set_grad_scaler(amp.GradScaler(**scaler))  # type: ignore[arg-type]

    def build(self, c: nn.Value) -> nn.Value:
        loss = nn.sum(nn.Value(self.w) * c)
        loss.backward()
        return loss


def test_f31_a_floor_never_raises_the_scale() -> None:
    probe = Probe(init_scale=0.25, min_scale=1.0)
    probe(f32(math.inf))
    assert probe.scaler.scale == 0.25 and probe.scaler.skipped_count == 1
    probe.scaler.scale = 0.5
    probe(f32(math.inf))
    assert probe.scaler.scale == 0.5
    with pytest.raises(ValueError, match="set_scale: scale = 1e-40"):
        probe.scaler.scale = 1e-40


def test_f30_the_parameter_without_a_scaler() -> None:
    probe = Probe()
    probe.config.track_grad_norm = True
    probe(f32(math.inf))
    assert probe.first_nonfinite_param() == "w"


def test_f32_a_scale_that_cannot_fall_is_noted() -> None:
    probe = Probe(init_scale=1.0)
    for _ in range(8):
        probe(f32(math.inf))
    assert any("min_scale = 1" in note for note in probe.notes())


def test_f42_the_handle_follows_the_automatic_scaler() -> None:
    graph = Mlp()
    graph.to("reference")
    graph.config.enable_amp(dtype="f16", policy=amp.Policy(trim=False))
    scaler = graph.grad_scaler()
    assert scaler.scale == 1 and scaler.name == ""
    graph(*batch())
    assert scaler.scale == 65536 and scaler.name == "scaler0"
    assert any("a grad scaler was added" in note for note in graph.notes())


def test_f41_a_changed_configuration_holds_at_once() -> None:
    graph = Mlp()
    graph.to("reference")
    x, y = batch()
    graph(x, y)
    assert "bf16" not in graph.compiled_text()
    graph.config.enable_amp(dtype="bf16", policy=amp.Policy(trim=False))
    graph(x, y)
    assert "bf16" in graph.compiled_text()
    graph.config.enable_amp(False)
    graph(x, y)
    assert "bf16" not in graph.compiled_text()


def test_f28_a_cast_to_f32_stays() -> None:
    class Around(nn.Graph):
        def build(self, x: nn.Value, w: nn.Value) -> nn.Value:
            product = nn.cast(nn.matmul(x, w), "f32")
            return nn.matmul((product + 0.25) - 4096.0, w)

    graph = Around()
    graph.to("reference")
    graph.config.enable_amp(dtype="f16", policy=amp.Policy(trim=False))
    assert graph(f32(4096).reshape(1, 1), f32(1).reshape(1, 1)).item() == 0.25


def test_f38_apply_where() -> None:
    class Capped(nn.Graph):
        def build(self, x: nn.Value) -> tuple[nn.Value, ...]:
            naive = nn.where(x > 80, 80, nn.exp(x))
            safe = nn.apply_where(x <= 80, x, nn.exp, 80)
            return (safe, *(nn.gradients(nn.sum(y), [x])[0] for y in (naive, safe)))

    value, naive, safe = Capped()(f32(1, 100))
    np.testing.assert_allclose(value, [math.e, 80], rtol=1e-6)
    assert math.isnan(naive[1])
    np.testing.assert_allclose(safe, [math.e, 0], rtol=1e-6)

    class Wrong(nn.Graph):
        def build(self, x: nn.Value) -> nn.Value:
            return nn.apply_where(x > 0, x, lambda _: 3.0, 0)  # type: ignore[arg-type, return-value]

    with pytest.raises(TypeError, match="apply_where: f did not return a Value"):
        Wrong()(f32(1))


class Two(nn.Graph):
    """Two losses over a and b, each with a scaler, for one optimizer or for one each."""

    def __init__(self, restricted: bool) -> None:
        super().__init__()
        self.a = nn.Parameter(f32(0))
        self.b = nn.Parameter(f32(0))
        self.s = self.add_scaler(amp.GradScaler(init_scale=1024))
        self.t = self.add_scaler(amp.GradScaler(init_scale=3))
        self.restricted = restricted
        if restricted:
            self.oa = self.add_optimizer(optim.SGD([self.a], lr=1, scaler="scaler0"))
            self.ob = self.add_optimizer(optim.SGD([self.b], lr=1, scaler="scaler1"))
        else:
            self.oa = self.add_optimizer(optim.SGD(self.parameters(), lr=1, scaler="scaler0"))

    def build(self, x: nn.Value, y: nn.Value) -> None:
        a, b = nn.Value(self.a), nn.Value(self.b)
        first, second = nn.sum(a * x + b * x), nn.sum(b * y + a * y)
        if self.restricted:
            first.backward(scaler=self.s, optimizers=[self.oa])
            second.backward(scaler="scaler1", optimizers="optimizer1")
        else:
            first.backward(scaler=self.s)
            second.backward(scaler=self.t)


def test_f39_losses_of_two_scalers_add_up() -> None:
    graph = Two(restricted=False)
    graph(f32(2), f32(5))
    state = graph.state_dict()
    assert state["a"].item() == -7 and state["b"].item() == -7
    graph(f32(2), f32(math.inf))
    assert graph.state_dict()["a"].item() == -7
    assert graph.s.scale == 1024 and graph.t.scale == 1.5


def test_f47_losses_that_reach_one_optimizer_each() -> None:
    graph = Two(restricted=True)
    graph(f32(2), f32(5))
    state = graph.state_dict()
    assert state["a"].item() == -2 and state["b"].item() == -5


def test_f47_detach_and_wrong_names() -> None:
    class Detached(nn.Graph):
        def build(self, x: nn.Value) -> tuple[nn.Value, nn.Value]:
            y = nn.sum(x * x.detach() + nn.detach(x * x))
            return y, nn.gradients(y, [x])[0]

    y, dx = Detached()(f32(2, 3))
    assert y.item() == 26
    np.testing.assert_array_equal(dx, [2, 3])

    class Unknown(Probe):
        def build(self, c: nn.Value) -> nn.Value:
            loss = nn.sum(nn.Value(self.w) * c)
            loss.backward(optimizers=["optimizer7"])
            return loss

    with pytest.raises(LookupError, match='backward: this graph has no optimizer "optimizer7"'):
        Unknown()(f32(1))

    class NoName(Probe):
        def build(self, c: nn.Value) -> nn.Value:
            loss = nn.sum(nn.Value(self.w) * c)
            loss.backward(optimizers=[3])  # type: ignore[list-item]
            return loss

    with pytest.raises(TypeError, match="neither a handle nor a name"):
        NoName()(f32(1))


def test_f29_small_gradients_survive_f16() -> None:
    class Small(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(np.ones((64, 64), np.float32))
            self.add_optimizer(optim.SGD(self.parameters(), lr=0))

        def build(self, x: nn.Value) -> nn.Value:
            loss = nn.mean(nn.matmul(x, self.w)) * 2.0**-21
            loss.backward()
            return nn.gradients(loss, [self.w])[0]

    graph = Small()
    graph.to("reference")
    graph.config.enable_amp(dtype="f16")
    dw = graph(np.ones((64, 64), np.float32))
    assert dw.dtype == np.float32 and dw[0, 0] == 2.0**-27


def test_f40_a_pattern_that_matches_nothing_is_a_note() -> None:
    graph = Mlp()
    graph.to("reference")
    graph.config.enable_amp(dtype="bf16", policy=amp.Policy(deny=["haed/*"]))
    graph(*batch())
    assert any('deny "haed/*" matches no node' in note for note in graph.notes())
