"""Modes and freezing of single modules, modules of several functions, lists and dicts of modules."""
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from halftone import nn, optim
from models import Array


class Function(nn.Graph):
    """A graph that is one function of modules."""

    def __init__(self, function: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def build(self, *values: nn.Value) -> Any:
        return self.function(*values)


ONES = np.ones(64, np.float32)
ROWS = np.zeros((16, 16), np.float32)


def drops(graph: nn.Graph) -> bool:
    return bool((graph(ONES) != ONES).any())


def test_a_graph_is_exported_and_goes_on(tmp_path: Path) -> None:
    graph = Function(lambda x: {"y": nn.relu(x)})
    path = tmp_path / "relu.onnx"
    graph.export_onnx(str(path), ONES)
    assert b"Relu" in path.read_bytes()
    assert graph.is_training
    graph.eval()
    assert (graph(-ONES)["y"] == 0).all()
    with pytest.raises(OSError, match="nowhere"):
        graph.export_onnx(str(tmp_path / "nowhere" / "relu.onnx"), ONES)


def test_f05_a_frozen_batch_norm_keeps_statistics_and_passes_gradients() -> None:
    norm = nn.BatchNorm2d(1)
    moving = nn.BatchNorm2d(1)
    for module in (norm, moving):
        module.running_mean.set_value(np.array([2], np.float32))
        module.running_var.set_value(np.array([4], np.float32))
    upstream = np.array([[1], [2], [3], [4]], np.float32)

    class Training(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.norm = norm
            self.moving = moving
            self.add_optimizer(
                optim.SGD(self.parameters(), lr=0.5, momentum=0.9, weight_decay=0.1)
            )

        def build(self, x: nn.Value) -> Any:
            y = self.norm(x)
            loss = nn.sum(y * nn.constant(upstream)) + nn.sum(self.moving(x))
            loss.backward()
            return y, nn.gradients(nn.sum(y * nn.constant(upstream)), [x])[0]

    graph = Training()
    assert norm.freeze() is norm
    y, dx = graph(np.array([[2], [4], [6], [8]], np.float32))
    np.testing.assert_allclose(y[:, 0], [0, 1, 2, 3], rtol=3e-6)
    np.testing.assert_allclose(dx[:, 0], [0.5, 1, 1.5, 2], rtol=3e-6)
    assert norm.running_mean.value() == 2 and norm.running_var.value() == 4
    assert norm.num_batches_tracked.value() == 0
    assert norm.weight is not None and norm.weight.value() == 1
    assert norm.bias is not None and norm.bias.value() == 0
    # 0.9 * 2 + 0.1 * 5
    np.testing.assert_allclose(moving.running_mean.value(), [2.3], rtol=1e-6)


def test_modes_reach_the_modules_below() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout()

        def forward(self, x: nn.Value) -> nn.Value:
            return nn.dropout(self.drop(x), 0.5)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: nn.Value) -> nn.Value:
            y: nn.Value = self.inner(x)
            return y

    outer = Outer()
    graph = Function(lambda x: outer(x), outer=outer)
    assert outer.is_training and drops(graph)
    assert outer.eval() is outer
    assert not outer.inner.drop.is_training and not drops(graph)
    outer.inner.drop.train()
    assert drops(graph)
    outer.freeze()
    assert outer.train().is_frozen and not outer.is_training and not drops(graph)
    outer.unfreeze()
    assert outer.is_training and drops(graph)
    outer.train(False)
    assert not drops(graph)
    graph.eval()
    outer.train()
    assert not drops(graph)


def test_build_may_return_another_form_in_another_mode() -> None:
    drop = nn.Dropout()
    graph = Function(lambda x: (drop(x), x) if drop.is_training else drop(x), drop=drop)
    for _ in range(2):
        drop.train()
        assert isinstance(graph(ONES), tuple)
        drop.eval()
        assert isinstance(graph(ONES), np.ndarray)


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(16, 16)
        self.b = nn.Linear(16, 16)

    def heads(self, x: nn.Value) -> tuple[nn.Value, nn.Value]:
        return self.a(x), self.b(x)

    def scoped(self, x: nn.Value) -> nn.Value:
        with nn.ModuleScope(self):
            return nn.dropout(nn.tanh(self.a(x)), 0.5)


def test_f18_keep_fp32_reaches_what_any_function_calls() -> None:
    two = TwoHeads()
    graph = Function(two.heads, two=two)
    graph.config.enable_amp(dtype="bf16")
    two.keep_fp32()
    graph.compile(ROWS)
    assert "bf16" not in graph.compiled_text()
    # Whether heads() makes ops of its own nobody can know.
    assert any("ModuleScope" in note for note in graph.notes())


def test_a_module_scope_takes_ops_into_the_module() -> None:
    two = TwoHeads()
    graph = Function(two.scoped, two=two)
    graph.config.enable_amp(dtype="bf16")
    two.keep_fp32()
    graph.compile(ROWS)
    assert "bf16" not in graph.compiled_text()
    assert "dropout" in graph.compiled_text()
    assert not [note for note in graph.notes() if "ModuleScope" in note]
    two.eval()
    graph.compile(ROWS)
    assert "dropout" not in graph.compiled_text()


def test_module_scopes_are_checked() -> None:
    two = TwoHeads()
    with pytest.raises(TypeError, match="ModuleScope: not a Module"):
        nn.ModuleScope(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="inside build"):
        with nn.ModuleScope(two):
            pass

    def loose(x: nn.Value) -> nn.Value:
        with nn.ModuleScope(nn.Linear(1, 1)):
            return x

    with pytest.raises(RuntimeError, match="not part of this graph"):
        Function(loose)(ONES)

    def crossed(x: nn.Value) -> nn.Value:
        outer, inner = nn.ModuleScope(two), nn.ModuleScope(two.a)
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)
        return x

    with pytest.raises(
        RuntimeError,
        match="ModuleScope: closed while another scope is open inside it, or twice; expected the "
        "innermost first",
    ):
        Function(crossed, two=two)(ONES)


def test_module_lists() -> None:
    class Stack(nn.Module):
        def __init__(self, depth: int) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(TwoHeads() for _ in range(depth))

        def forward(self, x: nn.Value) -> nn.Value:
            for block in self.blocks:
                x, y = block.heads(x)
                x = x + y
            return x

    stack = Stack(2)
    stack.blocks.append(TwoHeads()).extend([TwoHeads()])
    assert len(stack.blocks) == 4
    assert isinstance(stack.blocks[-1], TwoHeads) and stack.blocks[3] is stack.blocks[-1]
    assert [name for name, _ in stack.named_parameters()][:4] == [
        "blocks.0.a.weight",
        "blocks.0.a.bias",
        "blocks.0.b.weight",
        "blocks.0.b.bias",
    ]
    graph = Function(lambda x: stack(x), stack=stack)
    assert graph(ROWS).shape == (16, 16)
    stack.eval()
    assert not any(block.a.is_training for block in stack.blocks)
    with pytest.raises(IndexError, match=r"ModuleList\[4\]: there are 4 modules"):
        stack.blocks[4]
    with pytest.raises(TypeError, match="ModuleList: got 3, expected modules"):
        nn.ModuleList([3])  # type: ignore[list-item]
    with pytest.raises(NotImplementedError, match=r"ModuleList\(4\) has no forward\(x\)"):
        Function(lambda x: stack.blocks(x), stack=stack)(ROWS)


def test_insert_moves_the_names_behind_it() -> None:
    first, second = nn.Linear(1, 1), nn.Linear(2, 2)
    modules = nn.ModuleList([first, second])
    modules.insert(1, nn.ReLU())
    assert modules[0] is first and modules[2] is second
    assert [name for name, _ in modules.named_parameters()] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    modules.insert(-9, nn.ReLU())
    assert modules[1] is first


def test_lists_keep_what_nobody_else_does() -> None:
    modules = [nn.Linear(1, 1) for _ in range(3)]
    kept = nn.ModuleList(modules)
    modules.clear()
    assert [module.weight.shape for module in kept] == [(1, 1)] * 3


def test_sequential_is_a_list() -> None:
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
    net.append(nn.Linear(16, 4)).insert(1, nn.Tanh())
    assert [type(module).__name__ for module in net] == ["Linear", "Tanh", "ReLU", "Linear"]
    assert Function(lambda x: net(x), net=net)(ROWS).shape == (16, 4)


def test_module_dicts() -> None:
    heads = nn.ModuleDict({"classes": nn.Linear(16, 3)})
    heads["boxes"] = nn.Linear(16, 4)
    heads.update({"masks": nn.Sequential(nn.Linear(16, 5))})
    assert list(heads) == heads.keys() == ["classes", "boxes", "masks"]
    assert "boxes" in heads and "names" not in heads and len(heads) == 3
    assert [key for key, module in heads.items() if module is heads["boxes"]] == ["boxes"]
    assert heads.values()[0] is heads["classes"]
    assert heads.named_parameters()[4][0] == "masks.0.weight"
    graph = Function(lambda x: {k: heads[k](x) for k in heads}, heads=heads)
    assert {k: v.shape[1] for k, v in graph(ROWS).items()} == {
        "classes": 3,
        "boxes": 4,
        "masks": 5,
    }
    with pytest.raises(KeyError, match='ModuleDict: no module "names"'):
        heads["names"]
    with pytest.raises(ValueError, match='two members named "boxes"'):
        heads["boxes"] = nn.ReLU()
    with pytest.raises(TypeError, match="ModuleDict: got 3, expected modules"):
        nn.ModuleDict({"a": 3})


def test_f22_f53_norms_take_float64_as_linear_does() -> None:
    x = np.array([[1, 4], [3, 6]], np.float64)
    one = 1 / np.sqrt(1 + 1e-5)
    for affine in (True, False):
        batch = nn.BatchNorm2d(2, affine=affine)
        y = Function(lambda v: batch(v), batch=batch)(x)
        assert y.dtype == np.float64
        np.testing.assert_allclose(y, [[-one, -one], [one, one]], rtol=1e-13)
        assert batch.running_mean.value().dtype == np.float32
        layer = nn.LayerNorm([2], affine=affine)
        y = Function(lambda v: layer(v), layer=layer)(x)
        np.testing.assert_allclose(
            y, np.outer([1, 1], [-1, 1]) * 1.5 / np.sqrt(2.25 + 1e-5), rtol=1e-13
        )


def test_f55_a_parameter_assigned_to_a_module_that_a_graph_has() -> None:
    layer = nn.Linear(1, 1, bias=False)
    graph = Function(lambda x: layer(x), layer=layer)
    x = np.ones((1, 1), np.float32)
    graph(x)
    layer.weight = nn.Parameter(np.array([[7]], np.float32))
    assert graph(x) == 7
    assert graph.state_dict()["layer.weight"] == 7


CHANGES: list[tuple[str, Callable[[Any], Any]]] = [
    ("eval", lambda g: g.eval()),
    ("train", lambda g: g.train()),
    ("to", lambda g: g.to("reference")),
    ("add_module", lambda g: g.add_module("x", nn.Linear(1, 1))),
    ("add_module", lambda g: setattr(g, "y", nn.Linear(1, 1))),
    ("add_parameter", lambda g: setattr(g, "z", nn.Parameter(ONES))),
    ("add_optimizer", lambda g: g.add_optimizer(optim.SGD(g.parameters(), lr=1))),
    ("eval", lambda g: g.layer.eval()),
    ("freeze", lambda g: g.layer.freeze()),
    ("unfreeze", lambda g: g.layer.unfreeze()),
    ("keep_fp32", lambda g: g.layer.keep_fp32()),
    ("recompute", lambda g: g.layer.recompute()),
    ("register_module", lambda g: setattr(g.block, "c", nn.Linear(1, 1))),
    ("register_parameter", lambda g: g.block.register_parameter("p", nn.Parameter(ONES))),
]


@pytest.mark.parametrize("name,change", CHANGES)
def test_f69_changes_inside_build_are_errors_at_the_line(
    name: str, change: Callable[[Any], Any]
) -> None:
    class Changing(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 1)
            self.block = TwoHeads()

        def build(self, x: nn.Value) -> nn.Value:
            change(self)
            return self.layer(x)

    graph = Changing()
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=rf"test_modules\.py:\d+: {name}\(\) was called inside build\(\)"
        ) as caught:
            graph(np.ones((1, 1), np.float32))
        assert "change(self)" in str(caught.traceback[-2].statement)
    assert graph.is_training and graph.layer.is_training and graph.device == "cpu"
