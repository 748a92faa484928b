"""nn.LSTM and nn.GRU, which no file of python_stub names, against NumPy."""
from typing import Any

import numpy as np
import pytest
from halftone import nn


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_by_formula(x: Any, h: Any, c: Any, p: dict[str, Any]) -> Any:
    outputs = []
    for step in x:
        gates = step @ p["weight_ih_l0"].T + p["bias_ih_l0"] + h @ p["weight_hh_l0"].T + p["bias_hh_l0"]
        i, f, g, o = np.split(gates, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs), h, c


def gru_by_formula(x: Any, h: Any, p: dict[str, Any]) -> Any:
    outputs = []
    for step in x:
        xr, xz, xn = np.split(step @ p["weight_ih_l0"].T + p["bias_ih_l0"], 3, -1)
        sr, sz, sn = np.split(h @ p["weight_hh_l0"].T + p["bias_hh_l0"], 3, -1)
        z = sigmoid(xz + sz)
        h = (1 - z) * np.tanh(xn + sigmoid(xr + sr) * sn) + z * h
        outputs.append(h)
    return np.stack(outputs), h


class Layers(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(3, 4), nn.GRU(3, 4)

    def build(self, x: nn.Value, h0: nn.Value, c0: nn.Value) -> Any:
        output, (h_n, c_n) = self.lstm(x, (h0, c0))
        gated, state = self.gru(x, h0)
        return output, h_n, c_n, gated, state, self.lstm(x)[0], self.gru(x)[0]


def wide(state: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value, np.float64) for name, value in state.items()}


def test_layers() -> None:
    random = np.random.default_rng(3)
    x, h0, c0 = (random.standard_normal(shape) for shape in ((5, 2, 3), (2, 4), (2, 4)))
    model = Layers()
    out = model(*(a.astype(np.float32) for a in (x, h0[None], c0[None])))
    lstm, gru = wide(model.lstm.state_dict()), wide(model.gru.state_dict())
    zero = np.zeros((2, 4))
    expected = [
        *lstm_by_formula(x, h0, c0, lstm),
        *gru_by_formula(x, h0, gru),
        lstm_by_formula(x, zero, zero, lstm)[0],
        gru_by_formula(x, zero, gru)[0],
    ]
    assert len(out) == len(expected)
    for got, want in zip(out, expected):
        np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-5, atol=1e-6)


class WrongState(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, dropout=0.1, bidirectional=True, proj_size=2)

    def build(self, x: nn.Value) -> Any:
        return self.lstm(x, x)


def test_errors() -> None:
    with pytest.raises(ValueError, match="got 2 values; expected x, or x and the states h0 and c0"):
        WrongState()(np.zeros((5, 2, 3), np.float32))
    with pytest.raises(ValueError, match="proj_size is 9"):
        nn.LSTM(3, 4, proj_size=9)


class Functions(nn.Graph):
    def build(self, x: nn.Value, h0: nn.Value, w: nn.Value) -> Any:
        h, h_n, c_n = nn.lstm(x, h0, h0, w, w, reverse=True)
        return h, h_n, c_n


def test_functions() -> None:
    random = np.random.default_rng(4)
    x, h0, w = (random.standard_normal(shape) for shape in ((3, 2, 4), (2, 4), (16, 4)))
    h, h_n, c_n = Functions()(*(a.astype(np.float32) for a in (x, h0, w)))
    p = {"weight_ih_l0": w, "weight_hh_l0": w, "bias_ih_l0": 0, "bias_hh_l0": 0}
    outputs, last, cell = lstm_by_formula(x[::-1], h0, h0, p)
    for got, want in ((h, outputs[::-1]), (h_n, last), (c_n, cell)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
