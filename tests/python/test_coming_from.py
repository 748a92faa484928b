"""What docs/guide/coming_from.md promises people who come from other frameworks to Python."""
from typing import Any

import numpy as np
import pytest
from halftone import amp, nn, optim


class Quarter(nn.Module):
    """(x + 0.25) - 4096, which 16 bit cannot do at x = 4096."""

    def forward(self, x: nn.Value, count: int) -> tuple[nn.Value, int]:
        return (x + 0.25) - 4096.0, count


class Step(nn.Graph):
    """Quarter of 64 * 64, between products that are f16. Right: 0.25."""

    def __init__(self, **said: Any) -> None:
        super().__init__()
        self.quarter = Quarter().set_amp(**said)
        self.to("reference")
        self.config.enable_amp(policy=amp.Policy("f16", trim=False))

    def build(self, x: nn.Value, one: nn.Value) -> nn.Value:
        y, count = self.quarter(nn.matmul(x, x), 3)
        assert count == 3
        return nn.matmul(y, one)


def run(**said: Any) -> float:
    out = Step(**said)(np.array([[64]], np.float32), np.array([[1]], np.float32))
    return float(out[0, 0])


def test_set_amp() -> None:
    assert run() == 0
    assert run(fp32=True) == 0.25
    assert run(fp32_inputs=[0]) == 0.25
    # What is no value passes as it is. Nothing is 16 bit between a product and an f32 result.
    assert run(fp32_outputs=True) == 0.25
    with pytest.raises(ValueError, match="set_amp got fp32 and low"):
        nn.Linear(1, 1).set_amp(fp32=True, low=True)
    with pytest.raises(ValueError, match="set_amp names input 2; the call has 2"):
        run(fp32_inputs=[2])
    with pytest.raises(TypeError, match="set_amp names input 1, which is int; expected a value"):
        run(fp32_inputs=[1])


class Half(nn.Graph):
    """A linear layer in f16, with any scaler."""

    def __init__(self, scaler: amp.GradScaler) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.add_optimizer(optim.SGD(self.parameters(), lr=1e-3))
        self.config.enable_amp(dtype="float16")
        self.config.allow_fuse_model_update_ops(True)
        self.config.allow_fuse_cast_scale(True)
        self.scaler = self.set_grad_scaler(scaler)

    def build(self, x: nn.Value) -> nn.Value:
        loss = nn.mean(self.fc(x))
        loss.backward()
        return loss


def scales(scaler: amp.GradScaler, steps: int) -> list[float]:
    graph = Half(scaler)
    after = []
    for _ in range(steps):
        graph(np.ones((4, 8), np.float32))
        after.append(graph.scaler.scale)
    return after


def test_a_loss_scale_as_mmengine_writes_it() -> None:
    table = dict(init_scale=64.0, growth_factor=4.0, growth_interval=2)
    assert scales(amp.GradScaler(**table), 4) == [64, 256, 256, 1024]  # type: ignore[arg-type]
    assert scales(amp.StaticGradScaler(512.0), 3) == [512, 512, 512]


def test_a_scalers_state_and_pytorchs() -> None:
    # What torch.amp.GradScaler("cuda").state_dict() gives after an update, and what it reads.
    theirs = {
        "scale": 32768.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2000,
        "_growth_tracker": 7,
    }
    graph = Half(amp.GradScaler())
    graph.scaler.load_state_dict(theirs)
    assert graph.scaler.scale == 32768
    assert graph.scaler.growth_tracker == 7
    ours = graph.scaler.state_dict()
    assert {name: ours[name] for name in theirs} == theirs
    assert all(name in theirs or name.startswith("halftone.") for name in ours)
