"""amp.convert_model: trained models for inference in 16 bit."""
from pathlib import Path

import numpy as np
import pytest

import halftone
from halftone import amp, nn
from models import Array

X = np.random.default_rng(1).uniform(-1, 1, (4, 32)).astype(np.float32)


class Net(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(32, 64), nn.Linear(64, 8)

    def build(self, x: nn.Value) -> nn.Value:
        return self.fc2(nn.relu(self.fc1(x)))


def run(model: halftone.GraphFile) -> Array:
    (out,) = model.run({model.inputs[0]: X}).values()
    return out


def expected(model: halftone.GraphFile) -> Array:
    """In double precision, of the weights that the model has."""
    w = {name: value.astype(np.float64) for name, value in model.state_dict().items()}
    h = np.maximum(X @ w["fc1.weight"].T + w["fc1.bias"], 0)
    return h @ w["fc2.weight"].T + w["fc2.bias"]


@pytest.mark.parametrize("dtype, unit", [("float16", 2**-11), ("bfloat16", 2**-8)])
def test_converted_models_are_near_the_f32_ones(dtype: str, unit: float) -> None:
    model = Net().inference_model(X)
    want = expected(model)
    np.testing.assert_allclose(run(model), want, atol=1e-5)
    for cast_parameters in (False, True):
        converted = amp.convert_model(model, dtype, cast_parameters=cast_parameters)
        out = run(converted)
        assert out.dtype == np.float32
        error = np.abs(out - want).max()
        assert unit / 64 < error < 16 * unit


def test_parameters_are_stored_in_16_bit(tmp_path: Path) -> None:
    model = Net().inference_model(X)
    converted = amp.convert_model(model, "float16", cast_parameters=True)
    wide, low = model.state_dict(), converted.state_dict()
    for name in ("fc1.weight", "fc2.weight"):
        assert low[name].dtype == np.float16
        np.testing.assert_array_equal(low[name], wide[name].astype(np.float16))
    for path in (tmp_path / "model", tmp_path / "model.onnx"):
        converted.save(str(path))
        again = halftone.load_graph(str(path))
        assert again.state_dict()["fc1.weight"].dtype == np.float16
        np.testing.assert_allclose(run(again), run(converted), atol=2**-9)


def test_policies_and_the_way_back() -> None:
    model = Net().inference_model(X)
    policy = amp.Policy.from_lists(excluded_names=["fc2/*"])
    converted = amp.convert_model(model, "float16", policy=policy, cast_parameters=True)
    state = converted.state_dict()
    assert state["fc1.weight"].dtype == np.float16 and state["fc2.weight"].dtype == np.float32
    low = amp.convert_model(model, policy=amp.Policy("float16", low_outputs=True))
    assert run(low).dtype == np.float16
    plain = amp.remove_casts(amp.convert_model(model, "float16"))
    np.testing.assert_array_equal(run(plain), run(model))


def test_errors() -> None:
    model = Net().inference_model(X)
    with pytest.raises(ValueError, match="dtype is f32; expected f16 or bf16"):
        amp.convert_model(model, "float32")
    with pytest.raises(ValueError, match='deny "head/\\*" matches no node'):
        amp.convert_model(model, "float16", policy=amp.Policy(deny=["head/*"]))
    with pytest.raises(RuntimeError, match="is converted already"):
        amp.convert_model(amp.convert_model(model, "float16"), "float16")
