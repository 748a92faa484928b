"""The functions and layers that follow from the table of elementwise ops."""
import inspect
import math
from typing import Any, Callable

import numpy as np
import pytest
from halftone import nn
from models import Array
from test_graphs import run

X = np.array([-2.5, -0.5, 0.25, 1.0, 3.0], np.float32)
OTHERS = {"Dropout", "Flatten", "PReLU"}  # whose functions take more than x


def needs_no_argument(name: str) -> bool:
    try:
        getattr(nn, name)()
    except TypeError:
        return False
    return True


LAYERS = [
    n
    for n in vars(nn)
    if n != n.lower() and n.lower() in vars(nn) and n not in OTHERS and needs_no_argument(n)
]


def test_layers_are_found() -> None:
    assert {"ReLU", "Sigmoid", "Tanh", "SiLU", "GELU", "Mish", "LogSigmoid"} <= set(LAYERS)


class Layered(nn.Graph):
    def __init__(self, layer: Any, function: Any) -> None:
        super().__init__()
        self.layer = layer
        self.function = function

    def build(self, x: nn.Value) -> Any:
        return self.layer(x), self.function(x)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_applies_the_function_of_its_name(name: str) -> None:
    by_layer, by_function = Layered(getattr(nn, name)(), getattr(nn, name.lower()))(X)
    assert by_layer.tolist() == by_function.tolist()


ONE: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "logsigmoid": lambda x: -np.log1p(np.exp(-x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543773 * np.expm1(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "relu6": lambda x: np.clip(x, 0, 6),
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "expm1": np.expm1,
    "square": np.square,
    "ceil": np.ceil,
    "round": np.round,
    "sign": np.sign,
    "exp": np.exp,
    "cos": np.cos,
    "sin": np.sin,
    "erf": np.vectorize(math.erf),
    "reciprocal": lambda x: 1 / x,
    "neg": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "isfinite": np.isfinite,
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_array(name: str) -> None:
    want = ONE[name](X.astype(np.float64))
    np.testing.assert_allclose(run(getattr(nn, name), X), want, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arrays_or_a_number(name: str) -> None:
    y: Array = X[::-1].copy()
    function = getattr(nn, name)
    np.testing.assert_allclose(run(function, X, y), TWO[name](X, y), rtol=2e-7)
    np.testing.assert_allclose(run(lambda x: function(x, 0.25), X), TWO[name](X, 0.25), rtol=2e-7)


@pytest.mark.parametrize("name", ["log", "sqrt"])
def test_functions_of_positive_numbers(name: str) -> None:
    want = getattr(np, name)(np.abs(X.astype(np.float64)))
    np.testing.assert_allclose(run(getattr(nn, name), np.abs(X)), want, rtol=2e-6)


def test_log1p_and_rsqrt() -> None:
    x = np.abs(X.astype(np.float64))
    np.testing.assert_allclose(run(nn.log1p, np.abs(X)), np.log1p(x), rtol=2e-6)
    np.testing.assert_allclose(run(nn.rsqrt, np.abs(X)), x**-0.5, rtol=2e-6)


def test_numbers_have_the_names_of_pytorch() -> None:
    leaky = run(lambda x: nn.leaky_relu(x, negative_slope=0.5), X)
    assert leaky.tolist() == [-1.25, -0.25, 0.25, 1, 3]
    bounded = run(lambda x: nn.hardtanh(x, min_val=-2, max_val=2), X)
    assert bounded.tolist() == [-2, -0.5, 0.25, 1, 2]
    assert run(lambda x: nn.elu(x, alpha=0), X).tolist() == [0, 0, 0.25, 1, 3]


def test_layers_with_numbers() -> None:
    layer = nn.LeakyReLU(negative_slope=0.5)
    by_layer, by_function = Layered(layer, lambda x: nn.leaky_relu(x, 0.5))(X)
    assert by_layer.tolist() == by_function.tolist()
    by_layer, by_function = Layered(nn.PReLU(), lambda x: nn.leaky_relu(x, 0.25))(X)
    assert by_layer.tolist() == by_function.tolist()


def test_clamp_with_either_end_absent() -> None:
    assert run(lambda x: nn.clamp(x, min=0), X).tolist() == [0, 0, 0.25, 1, 3]
    assert run(lambda x: nn.clamp(x, max=0), X).tolist() == [-2.5, -0.5, 0, 0, 0]
    assert run(lambda x: nn.clamp(x, None, 1), X).tolist() == [-2.5, -0.5, 0.25, 1, 1]
    assert run(lambda x: nn.clamp(x, -1, 1), X).tolist() == [-1, -0.5, 0.25, 1, 1]


def test_logic() -> None:
    a, b = np.array([True, True, False]), np.array([True, False, False])
    assert run(nn.logical_and, a, b).tolist() == [True, False, False]
    assert run(nn.logical_or, a, b).tolist() == [True, True, False]
    assert run(nn.logical_not, a).tolist() == [False, False, True]


def test_all_names_what_there_is() -> None:
    public = {n for n, v in vars(nn).items() if n[0] != "_" and not inspect.ismodule(v)}
    assert set(getattr(nn, "__all__")) == public
