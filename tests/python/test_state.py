"""States that do not quite fit, names that have changed, ties, evaluations between steps."""
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from halftone import nn, optim
from models import Array, Mlp, batch


class Classifier(nn.Graph):
    """A backbone and a head of `classes` rows."""

    def __init__(self, classes: int, seed: int = 0) -> None:
        super().__init__()
        self.config.seed = seed
        self.backbone = nn.Linear(3, 4)
        self.head = nn.Linear(4, classes)
        self.optimizer = self.add_optimizer(optim.Adam(self.parameters()))

    def build(self, x: nn.Value) -> nn.Value:
        loss = nn.sum(self.head(nn.relu(self.backbone(x))))
        loss.backward()
        return loss


X = np.ones((2, 3), np.float32)


def test_f06_a_head_of_another_size(tmp_path: Path) -> None:
    five, two = Classifier(5, seed=1), Classifier(2)
    five(X)
    before, saved = two.state_dict(), five.state_dict()
    with pytest.raises(ValueError, match=r"head.weight\" is f32\[5,4\], expected f32\[2,4\]"):
        two.load_state_dict(saved)
    np.testing.assert_array_equal(two.state_dict()["backbone.weight"], before["backbone.weight"])
    report = two.load_state_dict(saved, strict=False)
    types = {m.name: (m.got, m.expected) for m in report.mismatched}
    assert types["head.weight"] == ("f32[5,4]", "f32[2,4]")
    assert types["optimizer0.head.bias.exp_avg"] == ("f32[5]", "f32[2]")
    assert report.unexpected == [] and report.missing == []
    assert "\"head.bias\" is f32[5], expected f32[2]" in repr(report)
    after = two.state_dict()
    np.testing.assert_array_equal(after["backbone.weight"], saved["backbone.weight"])
    np.testing.assert_array_equal(after["head.weight"], before["head.weight"])
    five.save_checkpoint(str(tmp_path / "c"))
    report, _ = Classifier(2).load_checkpoint(str(tmp_path / "c"), strict=False)
    assert len(report.mismatched) == 6


def prefixed(state: dict[str, Array], prefix: str) -> dict[str, Array]:
    own = ("backbone", "head")
    return {prefix + k if k.startswith(own) else k: v for k, v in state.items()}


@pytest.mark.parametrize(
    "rename",
    [{"module.*": "*"}, [("module.*", "*")], lambda name: name.removeprefix("module.")],
)
def test_renames(rename: Callable[[str], str], tmp_path: Path) -> None:
    saved, model = Classifier(2, seed=1), Classifier(2)
    state = prefixed(saved.state_dict(), "module.")
    assert model.load_state_dict(state, rename=rename).missing == []
    np.testing.assert_array_equal(
        model.state_dict()["head.weight"], saved.state_dict()["head.weight"]
    )
    saved.save_checkpoint(str(tmp_path / "c"))
    report, _ = model.load_checkpoint(str(tmp_path / "c"), rename=rename)
    assert report.mismatched == []


def test_renames_that_fail_change_nothing(tmp_path: Path) -> None:
    saved, model = Classifier(2, seed=1), Classifier(2)
    before, state = model.state_dict(), saved.state_dict()
    path = str(tmp_path / "c")
    saved.save_checkpoint(path)

    def refuse(name: str) -> str:
        if name == "head.weight":
            raise KeyError(name)
        return name

    for from_file in (False, True):

        def load(rename: Any) -> None:
            if from_file:
                model.load_checkpoint(path, rename=rename)
            else:
                model.load_state_dict(state, rename=rename)

        with pytest.raises(KeyError, match="head.weight"):
            load(refuse)
        with pytest.raises(TypeError, match=r"rename\(\"backbone.bias\"\) gave int; expected str"):
            load(len)
        with pytest.raises(TypeError, match="rename is 3; expected None, a dict or a list"):
            load(3)
        with pytest.raises(TypeError, match="expected None, a dict or a list"):
            load({"a": 1})
        with pytest.raises(ValueError, match="one '\\*' on both sides"):
            load({"a.*": "b"})
    np.testing.assert_array_equal(model.state_dict()["head.bias"], before["head.bias"])
    assert model.load_state_dict(state, rename={"x.*": "*"}).unused_renames == ["x.*"]


def test_state_of_a_module() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.norm = nn.BatchNorm2d(2)
            self.scale = nn.Parameter(np.full(2, 3, np.float32))

    saved, loaded = Block(), Block()
    state = saved.state_dict()
    assert list(state) == [
        "fc.bias", "fc.weight", "norm.bias", "norm.num_batches_tracked", "norm.running_mean",
        "norm.running_var", "norm.weight", "scale",
    ]
    state["scale"] = np.array([1, 2], np.float32)
    assert loaded.load_state_dict(state).missing == []
    np.testing.assert_array_equal(loaded.scale.value(), [1, 2])
    np.testing.assert_array_equal(loaded.state_dict()["fc.weight"], state["fc.weight"])
    state["extra"] = state.pop("scale")
    with pytest.raises(ValueError, match="missing: scale; unexpected: extra"):
        loaded.load_state_dict(state)
    assert loaded.load_state_dict(state, strict=False).unexpected == ["extra"]
    loaded.load_state_dict(state, rename={"extra": "scale"})


class Pair(nn.Graph):
    """Two layers of one shape."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.optimizer = self.add_optimizer(optim.Adam(self.parameters()))

    def build(self, x: nn.Value) -> nn.Value:
        loss = nn.sum(self.b(self.a(x)))
        loss.backward()
        return loss


def test_ties_made_late() -> None:
    x = np.ones((1, 2), np.float32)
    early, late = Pair(), Pair()
    early.b.weight = early.a.weight  # before the first call
    for graph in (early, late):
        graph(x)
    late.b.weight = late.a.weight
    late.load_state_dict(early.state_dict())
    for graph in (early, late):
        for _ in range(2):
            graph(x)
    one, two = early.state_dict(), late.state_dict()
    np.testing.assert_array_equal(one["a.weight"], one["b.weight"])
    np.testing.assert_array_equal(one["a.weight"], two["a.weight"])
    assert "optimizer0.b.weight.exp_avg" not in two
    one["b.weight"] = one["b.weight"] + 1
    with pytest.raises(ValueError, match="\"a.weight\" and \"b.weight\" are one tensor here"):
        late.load_state_dict(one)


def test_an_attribute_assigned_anew_is_a_tie() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(np.array([2], np.float32))

        def forward(self, x: nn.Value) -> nn.Value:
            return x * nn.Value(self.w)

    class Two(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Scale(), Scale()

        def build(self, x: nn.Value) -> nn.Value:
            y: nn.Value = self.b(self.a(x))
            return y

    graph = Two()
    x = np.array([1], np.float32)
    assert graph(x) == 4
    old = graph.b.w
    graph.b.w = graph.a.w
    graph.a.w.set_value(np.array([3], np.float32))
    assert graph(x) == 9
    graph.b.w = old
    assert graph(x) == 6
    assert len(graph.parameters()) == 2


def test_an_attribute_of_a_graph_assigned_anew() -> None:
    class Sum(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            shared = nn.Parameter(np.array([2], np.float32))
            self.a, self.b = shared, shared  # one tensor, two names
            self.c = nn.Parameter(np.array([10], np.float32))

        def build(self, x: nn.Value) -> nn.Value:
            return x + self.a + self.b + self.c

    graph = Sum()
    x = np.array([0], np.float32)
    assert graph(x) == 14
    graph.b = graph.c
    assert graph(x) == 22
    assert list(graph.state_dict()) == ["a", "b", "c", "run_count"]
    assert graph.state_dict()["b"] == 10 and graph.state_dict()["a"] == 2


def test_f04_evaluations_change_no_later_step() -> None:
    class Model(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.drop, self.last = nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1)
            self.add_optimizer(optim.Adam(self.parameters()))

        def build(self, x: nn.Value) -> nn.Value:
            loss = nn.mean(self.last(self.drop(self.first(x))))
            loss.backward()
            return loss

    def train(evaluate: bool) -> dict[str, Array]:
        model = Model()
        x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
        for step in range(6):
            model(x)
            if evaluate and step in (1, 3):
                model.eval()
                model(x)
                model.train()
        assert model.run_count == 6
        return model.state_dict()

    plain, evaluated = train(False), train(True)
    for name, value in plain.items():
        np.testing.assert_array_equal(evaluated[name], value)


def test_the_mode_alone_changes_nothing() -> None:
    graph = Mlp()
    x, y = batch()
    graph.eval()
    graph(x, y)
    assert graph.run_count == 0
