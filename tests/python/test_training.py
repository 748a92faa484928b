"""One step against NumPy's formulas; state, schedules, mixed precision."""
from pathlib import Path

import halftone
import numpy as np
import pytest
from halftone import amp, nn, optim
from models import Array, Mlp, batch


def step_by_formula(
    state: dict[str, Array], x: Array, y: Array, lr: float
) -> tuple[float, Array, dict[str, Array]]:
    """Loss, logits and parameters after one SGD step, in float64."""
    w1, b1, w2, b2 = (
        state[n].astype(np.float64)
        for n in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
    )
    x = x.astype(np.float64)
    z = x @ w1.T + b1
    h = np.maximum(z, 0)
    logits = h @ w2.T + b2
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    loss = -np.log(p[rows, y]).mean()
    d_logits = p.copy()
    d_logits[rows, y] -= 1
    d_logits /= len(y)
    d_z = (d_logits @ w2) * (z > 0)
    after = {
        "fc1.weight": w1 - lr * d_z.T @ x,
        "fc1.bias": b1 - lr * d_z.sum(axis=0),
        "fc2.weight": w2 - lr * d_logits.T @ h,
        "fc2.bias": b2 - lr * d_logits.sum(axis=0),
    }
    return float(loss), logits, after


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_step_is_the_formula(device: str) -> None:
    graph = Mlp(lr=0.25)
    graph.to(device)
    x, y = batch()
    loss, logits, after = step_by_formula(graph.state_dict(), x, y, 0.25)
    got_loss, got_logits = graph(x, y)
    assert got_loss.dtype == np.float32 and got_loss.shape == ()
    np.testing.assert_allclose(got_loss, loss, rtol=1e-5)
    np.testing.assert_allclose(got_logits, logits, rtol=1e-5, atol=1e-6)
    state = graph.state_dict()
    for name, expected in after.items():
        np.testing.assert_allclose(state[name], expected, rtol=1e-5, atol=1e-6)
    assert state["run_count"] == 1


def test_training_lowers_the_loss() -> None:
    graph = Mlp("adam", lr=0.05)
    x, _ = batch(64)
    y = (x[:, 0] > x[:, 1]).astype(np.int64)
    losses = [float(graph(x, y)[0]) for _ in range(200)]
    assert losses[-1] < 0.1 * losses[0]
    assert graph.optimizer.applied_steps == 200


def test_evaluation_changes_nothing() -> None:
    graph = Mlp()
    x, y = batch()
    graph.eval()
    assert not graph.is_training
    before = graph.state_dict()
    first, second = graph(x, y)[0], graph(x, y)[0]
    np.testing.assert_array_equal(first, second)
    after = graph.state_dict()
    for name in ("fc1.weight", "fc2.bias"):
        np.testing.assert_array_equal(before[name], after[name])


def test_state_moves_to_another_graph_exactly() -> None:
    x, y = batch()
    one, two = Mlp("adam"), Mlp("adam")
    two.config.seed = 7
    for _ in range(3):
        one(x, y)
    assert not np.array_equal(two.state_dict()["fc1.weight"], one.state_dict()["fc1.weight"])
    report = two.load_state_dict(one.state_dict())  # before its first call
    assert report.missing == [] and report.unexpected == []
    for _ in range(3):
        np.testing.assert_array_equal(one(x, y)[0], two(x, y)[0])


def test_checkpoints_resume_exactly(tmp_path: Path) -> None:
    path, (x, y) = str(tmp_path / "mlp.ckpt"), batch()
    one = Mlp("adam")
    for _ in range(3):
        one(x, y)
    one.save_checkpoint(path, {"epoch": "3"})
    two = Mlp("adam")
    report, metadata = two.load_checkpoint(path)
    assert metadata == {"epoch": "3"} and report.missing == []
    for _ in range(3):
        np.testing.assert_array_equal(one(x, y)[0], two(x, y)[0])
    state, metadata = halftone.read_checkpoint(path)
    assert metadata == {"epoch": "3"} and state["run_count"] == 3
    halftone.write_checkpoint(path, {"w": x})
    state, metadata = halftone.read_checkpoint(path)
    np.testing.assert_array_equal(state["w"], x)
    assert metadata == {} and list(state) == ["w"]


def test_checkpoints_that_cannot_be_read(tmp_path: Path) -> None:
    path, graph = tmp_path / "mlp.ckpt", Mlp()
    with pytest.raises(FileNotFoundError, match="mlp.ckpt"):
        graph.load_checkpoint(str(path))
    graph.save_checkpoint(str(path))
    before = graph.state_dict()["fc1.weight"]
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(RuntimeError, match="mlp.ckpt"):
        graph.load_checkpoint(str(path))
    path.write_bytes(b"nonsense" * 8)
    with pytest.raises(ValueError, match="mlp.ckpt"):
        graph.load_checkpoint(str(path))
    np.testing.assert_array_equal(graph.state_dict()["fc1.weight"], before)


def test_state_dict_is_a_copy() -> None:
    graph = Mlp()
    state = graph.state_dict()
    state["fc1.weight"][:] = 0
    assert graph.state_dict()["fc1.weight"].any()


def test_load_reports_and_refuses() -> None:
    graph = Mlp(None)
    state = graph.state_dict()
    del state["fc1.bias"]
    state["extra"] = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="fc1.bias"):
        graph.load_state_dict(state)
    report = graph.load_state_dict(state, strict=False)
    assert report.missing == ["fc1.bias"] and report.unexpected == ["extra"]
    with pytest.raises(ValueError, match=r"f32\[3\].*f32\[4,3\]|f32\[4,3\].*f32\[3\]"):
        graph.load_state_dict({"fc1.weight": np.zeros(3, np.float32)})


def test_learning_rate_and_schedule() -> None:
    schedule = optim.StepLR(2, 0.5) * optim.LinearWarmup(4, 0.5)
    # 0.5 + 0.5 * 3/4 of the warm-up, one halving.
    assert schedule.at(0.8, 3) == pytest.approx(0.8 * 0.5 * 0.875)
    graph = Mlp(None)
    handle = graph.add_optimizer(optim.SGD(graph.parameters(), lr=0.8), lr_sch=schedule)
    x, y = batch()
    for _ in range(3):
        graph(x, y)
    _, _, after = step_by_formula(graph.state_dict(), x, y, 0.8 * 0.5 * 0.875)
    graph(x, y)
    np.testing.assert_allclose(
        graph.state_dict()["fc1.weight"], after["fc1.weight"], rtol=1e-5, atol=1e-6
    )
    assert handle.lr == pytest.approx(0.8)
    handle.lr = 0.0
    before = graph.state_dict()["fc1.weight"]
    graph(x, y)
    np.testing.assert_array_equal(graph.state_dict()["fc1.weight"], before)
    with pytest.raises(ValueError, match="lr = -1"):
        handle.lr = -1


class Scaled(Mlp):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.config.enable_amp(True, dtype=np.float16)
        self.scaler = self.set_grad_scaler(amp.GradScaler(init_scale=scale, growth_interval=2))


def test_scaler_grows_and_skips() -> None:
    x, y = batch()
    graph = Scaled(1024)
    for _ in range(2):
        graph(x, y)
    assert graph.scaler.scale == 2048 and graph.scaler.skipped_count == 0
    graph.scaler.scale = 2.0**40  # the scaled loss gradient is beyond f16's 65504
    before = graph.state_dict()["fc1.weight"]
    loss, _ = graph(x, y)
    assert np.isfinite(loss) and graph.last_step_skipped()
    assert graph.scaler.skipped_count == 1 and graph.scaler.scale == 2.0**39
    assert graph.first_nonfinite_param() != ""
    np.testing.assert_array_equal(graph.state_dict()["fc1.weight"], before)
    state = graph.scaler.state_dict()
    assert state["scale"] == 2.0**39 and state["_growth_tracker"] == 0
    other = amp.GradScaler()
    other.load_state_dict(state)
    assert other.state_dict() == state


def test_amp_decides_and_is_overruled() -> None:
    x, y = batch()
    graph = Scaled(1024)
    _, logits = graph(x, y)
    assert logits.dtype == np.float32  # outputs keep the dtype that build() saw
    assert "f16[" in graph.compiled_text() and "f16[" not in graph.traced_text()
    assert "linear" in graph.amp_table() and "16 bit" in graph.amp_summary()
    denied = Scaled(1024)
    denied.config.enable_amp(policy=amp.Policy("f16", deny=["linear"]))
    denied(x, y)
    assert "f16[" not in denied.compiled_text()


def test_bf16_outputs_become_float32() -> None:
    graph = Mlp(None)
    graph.config.enable_amp(True, dtype="bfloat16")
    graph.config.amp_low_outputs = True
    graph.eval()
    x, y = batch()
    _, logits = graph(x, y)
    assert "bf16[5,2]" in graph.compiled_text()
    assert logits.dtype == np.float32
    # The lower half of a bf16's float32 is zero.
    assert not (logits.view(np.uint32) & 0xFFFF).any()


def test_policy_file(tmp_path: object) -> None:
    policy = amp.Policy.parse("dtype bf16\ndeny head/*\n")
    assert policy == amp.Policy("bfloat16", deny=["head/*"])
    assert amp.Policy.parse(str(policy)) == policy
    with pytest.raises(FileNotFoundError, match="absent"):
        amp.Policy.read_file(f"{tmp_path}/absent")


def test_clipping_and_gradient_norm() -> None:
    graph = Mlp(None)
    handle = graph.add_optimizer(optim.SGD(graph.parameters(), lr=1.0, clip_norm=1e-3))
    x, y = batch()
    before = graph.state_dict()
    _, _, after = step_by_formula(before, x, y, 1.0)
    norm = np.sqrt(sum(((after[n] - before[n]) ** 2).sum() for n in after))
    graph(x, y)
    assert handle.grad_norm == pytest.approx(norm, rel=1e-5)
    moved = graph.state_dict()
    length = np.sqrt(sum(((moved[n] - before[n]) ** 2).sum() for n in after))
    assert length == pytest.approx(1e-3, rel=1e-3)
