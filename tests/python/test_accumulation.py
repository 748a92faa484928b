"""Gradients of several micro-batches for one update."""

import numpy as np
import pytest
from halftone import amp, nn, optim
from models import Array


class Probe(nn.Graph):
    """A parameter that starts at 0 and has the mean of the input as its gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(np.zeros(1, np.float32))
        self.optimizer = self.add_optimizer(optim.SGD(self.parameters(), lr=1.0))

    def build(self, c: nn.Value) -> tuple[nn.Value, nn.Value]:
        loss = nn.mean(nn.Value(self.w) * c)
        loss.backward()
        return loss, c * 1.0


def probe(values: list[float]) -> Array:
    return np.array(values, np.float32)


def test_a_call_is_split_and_its_outputs_joined() -> None:
    model = Probe()
    model.config.set_gradient_accumulation_steps(2)
    assert model.config.gradient_accumulation_steps == 2
    loss, c = model(probe([1, 3, 5, 7]))
    assert loss.shape == (2,)
    assert c.tolist() == [1, 3, 5, 7]
    assert model.w.value().tolist() == [-4]
    assert model.run_count == 2


def test_windows_over_calls_and_a_short_tail() -> None:
    model = Probe()
    model.config.accumulate_calls(3)
    assert model.config.accumulated_calls == 3
    for value in (1, 2, 6, 4):
        model(probe([value]))
    assert model.w.value().tolist() == [-3]
    assert model.accumulated_micro_batches == 1
    model.flush()
    assert model.w.value().tolist() == [-7]
    assert model.accumulated_micro_batches == 0
    assert model.optimizer.applied_steps == 2


def test_a_state_resumes_within_a_window() -> None:
    killed, resumed = Probe(), Probe()
    for model in (killed, resumed):
        model.config.accumulate_calls(2)
    killed(probe([2]))
    resumed.load_state_dict(killed.state_dict())
    resumed(probe([4]))
    assert resumed.w.value().tolist() == [-3]


def test_a_batch_that_does_not_divide() -> None:
    model = Probe()
    model.config.set_gradient_accumulation_steps(3)
    with pytest.raises(ValueError, match="divides into 3 micro-batches"):
        model(probe([1, 2, 3, 4]))


def test_the_rule_of_a_scaler_is_set_between_steps() -> None:
    model = Probe()
    scaler = model.set_grad_scaler(amp.GradScaler(init_scale=64, growth_interval=9))
    model(probe([1]))
    scaler.growth_interval = 2
    scaler.growth_factor = 4
    scaler.backoff_factor = 0.25
    model(probe([1]))
    assert scaler.scale == 256
    model(probe([np.inf]))
    assert scaler.scale == 64
    assert (scaler.growth_interval, scaler.growth_factor) == (2, 4)
    with pytest.raises(ValueError, match="growth_factor = 1; expected > 1"):
        scaler.growth_factor = 1
