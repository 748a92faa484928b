"""What build() may return, arrays in and out, modules written in Python, graphs from files."""
from pathlib import Path
from typing import Any

import halftone
import numpy as np
import pytest
from halftone import nn, optim
from models import Array


def run(function: Any, *arrays: Any) -> Any:
    """Calls a graph that is one function."""

    class Function(nn.Graph):
        def build(self, *values: nn.Value) -> Any:
            return function(*values)

    return Function()(*arrays)


X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def test_results_have_the_form_of_build() -> None:
    np.testing.assert_array_equal(run(nn.relu, X), np.maximum(X, 0))
    pair = run(lambda x: (x + 1, 2 * x), X)
    assert isinstance(pair, tuple)
    np.testing.assert_array_equal(pair[1], 2 * X)
    several = run(lambda x: [x - 1], X)
    assert isinstance(several, list) and len(several) == 1
    named = run(lambda x: {"a": -x, "b": x / 2}, X)
    assert list(named) == ["a", "b"]
    np.testing.assert_array_equal(named["b"], X / 2)
    assert run(lambda x: None, X) is None


def test_every_signature_has_its_own_form() -> None:
    class Mode(nn.Graph):
        def build(self, x: nn.Value) -> Any:
            return x + 1 if x.shape[0] == 2 else (x, x)

    graph = Mode()
    assert isinstance(graph(X), np.ndarray)
    assert isinstance(graph(X[:1]), tuple)
    assert isinstance(graph(X), np.ndarray)


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8, np.bool_]
)
def test_dtypes_pass_through(dtype: Any) -> None:
    x = np.array([0, 1, 1], dtype)
    y = run(lambda v: nn.reshape(v, [3, 1]), x)
    assert y.dtype == dtype and y.shape == (3, 1)
    np.testing.assert_array_equal(y[:, 0], x)


def test_strides_do_not_matter() -> None:
    for view in (X.T, X[:, ::2], X[::-1], np.asfortranarray(X)):
        np.testing.assert_array_equal(run(lambda v: v * 1, view), view)


def test_numpy_scalars_and_empty_arrays() -> None:
    assert run(lambda v: v + 1, np.float32(2)) == 3
    assert run(lambda v: v + 1, np.zeros((0, 4), np.float32)).shape == (0, 4)


def test_inputs_are_read_when_called_and_outputs_are_kept() -> None:
    class Twice(nn.Graph):
        def build(self, x: nn.Value) -> nn.Value:
            return x * 2

    graph = Twice()
    x = X.copy()
    first = graph(x)
    x[:] = 1
    second = graph(x)
    np.testing.assert_array_equal(first, 2 * X)
    np.testing.assert_array_equal(second, np.full_like(X, 2))
    del graph
    first += 1  # writable, and its own memory
    np.testing.assert_array_equal(second, np.full_like(X, 2))


def test_arithmetic() -> None:
    def build(x: nn.Value, y: nn.Value) -> Any:
        return [1 - x, 1 / (y + 4), y**2, x @ nn.transpose(y, 0, 1), x > 0, 2 >= y]

    y = X + 0.5
    got = run(build, X, y)
    wanted: list[Any] = [1 - X, 1 / (y + 4), y**2, X @ y.T, X > 0, 2 >= y]
    for array, expected in zip(got, wanted):
        np.testing.assert_allclose(array, expected, rtol=1e-6)
        assert array.dtype == expected.dtype


def test_functions_over_axes() -> None:
    def build(x: nn.Value) -> Any:
        return {
            "sum": nn.sum(x),
            "mean": nn.mean(x, axes=1, keepdim=True),
            "max": nn.max(x, axes=[0, -1]),
            "argmax": nn.argmax(x, axis=-1),
            "concat": nn.concat([x, x], axis=0),
            "where": nn.where(x > 0, x, 0.5),
            "cast": nn.cast(x, np.int32),
            "slice": nn.slice(x, 1, -2, 3),
            "constant": nn.constant(X) + x,
        }

    got = run(build, X)
    assert got["sum"] == X.sum() and got["max"] == 5
    np.testing.assert_allclose(got["mean"], X.mean(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(got["argmax"], X.argmax(axis=-1))
    np.testing.assert_array_equal(got["concat"], np.concatenate([X, X]))
    np.testing.assert_array_equal(got["where"], np.where(X > 0, X, 0.5))
    np.testing.assert_array_equal(got["cast"], X.astype(np.int32))
    np.testing.assert_array_equal(got["slice"], X[:, -2:3])
    np.testing.assert_array_equal(got["constant"], 2 * X)


def test_convolution_layers() -> None:
    class Net(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 2, (2, 2), stride=2, bias=False)
            self.pool = nn.MaxPool2d(2)

        def build(self, x: nn.Value) -> tuple[nn.Value, nn.Value]:
            return self.conv(x), self.pool(x)

    net = Net()
    assert net.conv.bias is None
    weight = np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2)
    net.conv.weight.set_value(weight)
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    conv, pool = net(x)
    windows = x.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(4, 4)
    np.testing.assert_array_equal(conv.reshape(2, 4), weight.reshape(2, 4) @ windows.T)
    np.testing.assert_array_equal(pool.reshape(4), windows.max(axis=1))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.gain = nn.Parameter(np.full(3, 2, np.float32))
        self.count = nn.Buffer(np.zeros(1, np.float32))

    def forward(self, x: nn.Value, shift: float = 0.0) -> nn.Value:
        return self.fc(x) * self.gain + shift


def test_modules_in_python() -> None:
    class Net(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()
            self.tail = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))
            self.scale = nn.Parameter(np.float32(3))
            self.add_optimizer(optim.SGD(self.parameters(), lr=0.1))

        def build(self, x: nn.Value) -> nn.Value:
            y = self.tail(self.block(x, shift=1.0)) * self.scale
            nn.mean(y).backward()
            return y

    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == [
        "block.gain",
        "block.fc.weight",
        "block.fc.bias",
        "tail.1.weight",
        "tail.1.bias",
        "scale",
    ]
    s = net.state_dict()
    assert "block.count" in s
    y = net(X)
    h = (X @ s["block.fc.weight"].T + s["block.fc.bias"]) * s["block.gain"] + 1
    expected = (np.maximum(h, 0) @ s["tail.1.weight"].T + s["tail.1.bias"]) * 3
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    # d mean(y) / d scale is the mean of y / scale.
    assert net.scale.value() == pytest.approx(3 - 0.1 * expected.mean() / 3, rel=1e-5)
    assert len(net.tail) == 2 and isinstance(net.tail[-1], nn.Linear)


def test_parameters_are_tied_by_assignment() -> None:
    class Tied(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
            second.weight = first.weight
            self.first, self.second = first, second

        def build(self, x: nn.Value) -> nn.Value:
            return self.second(self.first(x))

    tied = Tied()
    assert len(tied.parameters()) == 1
    w = tied.first.weight.value()
    np.testing.assert_allclose(tied(X), X @ w.T @ w.T, rtol=1e-4, atol=1e-5)


TEXT = """graph @step(%x: f32[2,3]) {
  %w = variable "w" {init="constant(2)"} : f32[3]
  %y = mul(%x, %w)
  %s = sum(%y) {axes=[0,1]}
  return product=%y, %s
}
"""


def test_graph_files(tmp_path: Path) -> None:
    path = tmp_path / "step.txt"
    path.write_text(TEXT)
    graph = halftone.load_graph(str(path))
    assert graph.inputs == ["x"] and graph.outputs == ["product", "s"]
    out = graph.run({"x": X})
    np.testing.assert_array_equal(out["product"], 2 * X)
    assert out["s"] == 2 * X.sum()
    np.testing.assert_array_equal(graph.state_dict()["w"], np.full(3, 2, np.float32))
    graph.load_state_dict({"w": np.array([1, 0, -1], np.float32)})
    np.testing.assert_array_equal(graph.run({"x": X})["product"], X * [1, 0, -1])
    assert "mul" in graph.text() and "mul" in graph.kernel_log()
    again = halftone.parse_graph(graph.text(), device="reference")
    np.testing.assert_array_equal(again.run({"x": X})["product"], 2 * X)


def test_graph_files_refuse(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent.txt"):
        halftone.load_graph(str(tmp_path / "absent.txt"))
    with pytest.raises(ValueError, match="line 1"):
        halftone.parse_graph("nonsense")
    with pytest.raises(ValueError, match='device is "gpu"; expected cpu, reference'):
        halftone.parse_graph(TEXT, device="gpu")
    with pytest.raises(ValueError, match='two outputs are called "y"; expected different names'):
        halftone.parse_graph("graph @g(%x: f32[2]) {\n  %y = neg(%x)\n  return %y, y=%x\n}\n")
    graph = halftone.parse_graph(TEXT)
    with pytest.raises(ValueError, match=r'input "x" is missing; expected f32\[2,3\]'):
        graph.run({})
    with pytest.raises(ValueError, match=r'input "x": got f32\[2\], expected f32\[2,3\]'):
        graph.run({"x": np.zeros(2, np.float32)})
    with pytest.raises(ValueError, match='has no input "z"'):
        graph.run({"x": X, "z": X})


def test_dump_folder(tmp_path: Path) -> None:
    class Twice(nn.Graph):
        def build(self, x: nn.Value) -> nn.Value:
            return x * 2 * 1

    graph = Twice()
    graph.config.dump_dir = str(tmp_path)
    graph(X)
    assert graph.name == "Twice"
    assert list(tmp_path.glob("Twice_0/*"))


def test_version_and_threads() -> None:
    assert halftone.__version__.count(".") == 2
    before = halftone.num_threads()
    halftone.set_num_threads(1)
    assert halftone.num_threads() == 1
    halftone.set_num_threads(before)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    names = ["w\udcff", "w\udcfe", "w\u00fc"]  # bytes ff and fe as Python writes them, and a letter
    state = {name: np.array(i, np.float32) for i, name in enumerate(names)}
    path = str(tmp_path / "c")
    halftone.write_checkpoint(path, state)
    read, _ = halftone.read_checkpoint(path)
    assert {name: float(value) for name, value in read.items()} == dict(zip(names, range(3)))
    halftone.write_checkpoint(path, read)  # and back
    assert halftone.read_checkpoint(path)[0].keys() == state.keys()
