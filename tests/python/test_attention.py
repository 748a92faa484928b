"""nn.scaled_dot_product_attention and its modules, which no file of python_stub names, against NumPy."""
import gc
from typing import Any

import numpy as np
import pytest
from halftone import nn


def by_formula(q: Any, k: Any, v: Any, allowed: Any = True) -> Any:
    """In double precision; `allowed` says which keys a query sees."""
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(np.where(allowed, scores, -np.inf))
    return weights / weights.sum(-1, keepdims=True) @ v


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


class Function(nn.Graph):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def build(self, q: nn.Value, k: nn.Value, v: nn.Value, mask: nn.Value) -> Any:
        return (
            nn.scaled_dot_product_attention(q, k, v, mask, **self.options),
            nn.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5, enable_gqa=True),
        )


def test_function() -> None:
    q, k, v = numbers(2, 4, 5, 8), numbers(2, 2, 5, 8), numbers(2, 2, 5, 3)
    mask = np.arange(5) % 2 == 0
    single = [x.astype(np.float32) for x in (q, k, v)]
    masked, causal = Function(enable_gqa=True)(*single, mask)
    wide_k, wide_v = np.repeat(k, 2, 1), np.repeat(v, 2, 1)
    np.testing.assert_allclose(masked, by_formula(q, wide_k, wide_v, mask), rtol=1e-5, atol=1e-6)
    scaled = q * 0.5 * np.sqrt(8)
    expected = by_formula(scaled, wide_k, wide_v, np.tri(5, dtype=bool))
    np.testing.assert_allclose(causal, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="key has 2 heads"):
        Function()(*single, mask)


class Layer(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def build(self, x: nn.Value, mask: nn.Value) -> Any:
        return self.attention(x), self.attention(x, x, x), self.attention(x, x, x, mask)


def test_multihead_attention() -> None:
    x = numbers(1, 3, 4).astype(np.float32)
    model = Layer()
    alone, same, masked = model(x, np.triu(np.ones((3, 3), dtype=bool), 1))
    state = {name: np.asarray(value, np.float64) for name, value in model.attention.state_dict().items()}
    projected = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    heads = projected.reshape(3, 3, 2, 2).transpose(1, 2, 0, 3)  # part, head, position, column
    q, k, v = heads
    for got, allowed in ((alone, True), (same, True), (masked, np.tri(3, dtype=bool))):
        joined = by_formula(q, k, v, allowed).transpose(1, 0, 2).reshape(3, 4)
        expected = joined @ state["out_proj.weight"].T + state["out_proj.bias"]
        np.testing.assert_allclose(got[0], expected, rtol=1e-5, atol=1e-6)


def test_submodules() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)
    attention = layer.self_attn
    assert layer.self_attn is attention
    state = layer.state_dict()
    for got, name in (
        (attention.out_proj.weight, "self_attn.out_proj.weight"),
        (attention.in_proj_bias, "self_attn.in_proj_bias"),
        (layer.linear2.bias, "linear2.bias"),
        (layer.norm2.weight, "norm2.weight"),
    ):
        assert got is not None
        np.testing.assert_array_equal(got.value(), state[name])
    tied = nn.Linear(4, 4)
    attention.out_proj.weight = tied.weight
    np.testing.assert_array_equal(layer.state_dict()["self_attn.out_proj.weight"], tied.weight.value())
    assert attention.freeze() is attention and attention.out_proj.is_frozen
    assert not layer.is_frozen and not layer.linear1.is_frozen
    with pytest.raises(AttributeError):
        setattr(layer, "linear1", tied)
    part = nn.MultiheadAttention(4, 2).out_proj  # outlives the name of what it is part of
    gc.collect()
    assert part.weight.value().shape == (4, 4)


def test_transformer_encoder_layer() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, activation="gelu")
    names = [name for name, _ in layer.named_parameters()]
    assert names[0] == "self_attn.in_proj_weight" and names[-1] == "norm2.bias"
    assert repr(layer) == "TransformerEncoderLayer(4, 2)"
    with pytest.raises(ValueError, match="num_heads is 3; expected a divisor of 4"):
        nn.MultiheadAttention(4, 3)
    with pytest.raises(ValueError, match="activation"):
        nn.TransformerEncoderLayer(4, 2, activation="tanh")
