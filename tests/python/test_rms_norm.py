"""nn.RMSNorm, which no file of python_stub names, against NumPy."""
from typing import Any

import numpy as np
import pytest
from halftone import nn


class Norm(nn.Graph):
    def __init__(self, norm: nn.RMSNorm) -> None:
        super().__init__()
        self.norm = norm

    def build(self, x: nn.Value) -> Any:
        return self.norm(x)


@pytest.mark.parametrize("eps", [None, 1e-2])
def test_values(eps: float | None) -> None:
    x = np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32) / 8
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    norm = nn.RMSNorm((2, 3), eps=eps)
    assert norm.weight is not None
    norm.weight.set_value(weight)
    added = np.finfo(np.float32).eps if eps is None else eps
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean((1, 2), keepdims=True) + added) * weight
    np.testing.assert_allclose(Norm(norm)(x), expected, rtol=2e-6)


def test_parameters_and_text() -> None:
    assert [name for name, _ in nn.RMSNorm([4]).named_parameters()] == ["weight"]
    assert nn.RMSNorm([4], affine=False).weight is None
    assert repr(nn.RMSNorm([4])) == "RMSNorm[4]"
    assert (nn.RMSNorm.__doc__ or "").startswith("x / sqrt(mean(x^2) + eps) * weight")
    with pytest.raises(ValueError, match="RMSNorm: normalized_shape is"):
        nn.RMSNorm([])
