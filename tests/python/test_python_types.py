"""What Python programs do with parameters, arrays and classes."""
import gc
import weakref
from typing import Any, Optional

import numpy as np
import pytest
from halftone import nn, optim
from models import Array, Mlp, batch
from test_graphs import X, run

W = np.array([[1.0, -2.0], [0.5, 4.0], [-1.0, 3.0]], np.float32)


def test_f14_parameters_of_a_module() -> None:
    layer = nn.Linear(2, 2)
    assert [p.shape for p in layer.parameters()] == [(2, 2), (2,)]
    block = nn.Sequential(layer, layer)  # twice the same
    assert len(block.parameters()) == 2
    graph = Mlp(optimizer=None)
    assert graph.fc1.parameters() + graph.fc2.parameters() == graph.parameters()
    # What an optimizer takes.
    optim.SGD(layer.parameters(), lr=0.1)


class Weighted(nn.Graph):
    """One parameter and what `form` makes of it."""

    def __init__(self, form: Any, weight: Array = W) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.form = form

    def build(self, *inputs: nn.Value) -> Any:
        return self.form(self.weight, *inputs)


@pytest.mark.parametrize(
    "form",
    [
        lambda w: w * 2.0,
        lambda w: 2.0 * w,
        lambda w: w * w,
        lambda w: -w,
        lambda w: w + 1,
        lambda w: 1 - w,
        lambda w: w / 4,
        lambda w: 4 / w,
        lambda w: w**2,
        lambda w: 2**w,
        lambda w: abs(w),
        lambda w: w < 0,
        lambda w: w <= 0.5,
        lambda w: w > 0,
        lambda w: w >= 0.5,
        lambda w: w == 0.5,
        lambda w: w != 0.5,
        lambda w: w == w,
        lambda w: w * np.float32(3),
    ],
)
def test_f36_parameters_in_arithmetic(form: Any) -> None:
    result = Weighted(form)()
    np.testing.assert_allclose(result, form(W), rtol=1e-6)
    assert result.dtype == form(W).dtype
    # Values alike.
    np.testing.assert_array_equal(run(form, W), result)


def test_f36_products() -> None:
    np.testing.assert_allclose(Weighted(lambda w, x: x @ w)(X), X @ W, rtol=1e-6)
    np.testing.assert_allclose(Weighted(lambda w, x: w @ x)(X), W @ X, rtol=1e-6)
    square = W[:2]
    np.testing.assert_allclose(Weighted(lambda w: w @ w, square)(), square @ square, rtol=1e-6)


def test_f36_a_parameter_comes_back_from_build() -> None:
    np.testing.assert_array_equal(Weighted(lambda w: w)(), W)
    one, both = Weighted(lambda w: {"w": w, "twice": w * 2})().values()
    np.testing.assert_array_equal(both, 2 * one)


def test_f36_comparison_gives_no_truth() -> None:
    def branch(w: Any) -> Any:
        return w if w == 0 else -w

    with pytest.raises(TypeError, match="no content while build.. describes the step; nn.where"):
        Weighted(branch)()
    # Other types are never equal.
    assert Weighted(lambda w: w * (1.0 if w != "text" and w is not None else 2.0))()[0, 0] == 1


def test_f36_parameters_are_keys() -> None:
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    assert layer.weight == layer.weight and layer.weight != other.weight
    assert layer.weight in layer.parameters() and layer.weight not in other.parameters()
    assert {layer.weight: "w", other.weight: "v"}[layer.weight] == "w"
    with pytest.raises(RuntimeError, match="inside build"):
        layer.weight * 2


def test_numbers_that_lose_digits_or_wrap() -> None:
    count = np.array([1, 2], np.int64)
    assert run(lambda x: x + 2**53, count).tolist() == [2**53 + 1, 2**53 + 2]
    with pytest.raises(ValueError) as caught:
        run(lambda x: x + (2**53 + 1), count)
    assert str(caught.value) == (
        "the number 9007199254740993"
        " has more digits than a double; expected one that a double holds, or nn.constant of an int64"
    )
    exact = run(lambda x: x + nn.constant(np.int64(2**53 + 1)), count)
    assert exact.tolist() == [2**53 + 2, 2**53 + 3]
    with pytest.raises(ValueError, match=r"add: the number 3e\+09 does not fit .* i32"):
        run(lambda x: x + 3_000_000_000, count.astype(np.int32))


def test_f15_dtypes_in_and_out() -> None:
    for dtype in ("float64", "float32", "float16", "int64", "int32", "uint8", "bool"):
        x = np.array([[0, 1, 3], [2, 1, 0]]).astype(dtype)
        for form in (x, x.T, x[:, ::2], np.asfortranarray(x), x[0, 1], np.zeros((0, 2), dtype)):
            result = run(lambda v: nn.reshape(v, v.shape), form)
            assert result.dtype == x.dtype and result.shape == form.shape
            np.testing.assert_array_equal(result, form)


class Tagged(np.ndarray[Any, Any]):
    pass


def test_array_subclasses_are_not_stripped() -> None:
    masked: Any = getattr(np.ma, "masked_array")(X, mask=X > 0)
    with pytest.raises(TypeError, match="input 0: got MaskedArray, whose mask .*filled"):
        run(nn.relu, masked)
    with pytest.raises(TypeError, match="got Tagged, a subclass of NumPy's array; .*asarray"):
        run(nn.relu, X.view(Tagged))
    with pytest.raises(TypeError, match='state "w": got MaskedArray'):
        Weighted(lambda w: w).load_state_dict({"w": masked})
    with pytest.raises(TypeError, match="Parameter: got MaskedArray"):
        nn.Parameter(masked)
    with pytest.raises(TypeError, match="MaskedArray"):
        run(lambda x: x + nn.constant(masked), X)


def test_a_memmap_is_an_array(tmp_path: Any) -> None:
    X.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, "r", shape=X.shape)
    np.testing.assert_array_equal(run(nn.neg, mapped), -X)


@pytest.mark.parametrize(
    "made",
    [
        lambda: (nn.Module(), nn.Linear),
        lambda: (nn.Linear(2, 2), nn.Module),
        lambda: (nn.Linear(2, 2), nn.Conv2d),
        lambda: (nn.Parameter(X), nn.Linear),
        lambda: (nn.ReLU(), nn.Tanh),
        lambda: (Mlp(), nn.Linear),
        lambda: (Mlp(), nn.Graph),
        lambda: (Mlp().optimizer, nn.ScalerHandle),
        lambda: (optim.StepLR(2), nn.GraphConfig),
    ],
)
def test_f56_objects_keep_their_class(made: Any) -> None:
    thing, other = made()
    before = type(thing)
    with pytest.raises(TypeError, match="__class__ assignment"):
        thing.__class__ = other
    assert type(thing) is before


def test_f56_between_classes_of_the_user() -> None:
    class One(nn.Module):
        pass

    class Two(nn.Module):
        def forward(self, x: nn.Value) -> nn.Value:
            return -x

    module: Any = One()
    module.__class__ = Two  # the same C++ class is behind both
    assert type(module) is Two
    with pytest.raises(TypeError):
        module.__class__ = Weighted  # type: ignore[assignment]


class Child(nn.Module):
    parent: Optional[Any] = None

    def __init__(self) -> None:
        super().__init__()
        self.big = nn.Parameter(np.zeros(1000, np.float32))


def freed(make: Any) -> bool:
    reference = weakref.ref(make())
    gc.collect()
    return reference() is None


def test_f63_a_module_that_knows_its_parent_is_collected() -> None:
    def parent() -> Any:
        outer: Any = Child()
        outer.inner = Child()
        object.__setattr__(outer.inner, "parent", outer)
        return outer

    def graph() -> Any:
        mlp: Any = Mlp()
        mlp.block = Child()
        object.__setattr__(mlp.block, "parent", mlp)
        mlp(*batch())
        return mlp

    def sequential() -> nn.Sequential:
        inner = Child()
        outer = nn.Sequential(inner, nn.ReLU())
        object.__setattr__(inner, "parent", outer)
        return outer

    def itself() -> Child:
        module = Child()
        object.__setattr__(module, "parent", module)
        return module

    for make in (parent, graph, sequential, itself):
        kept = make()
        gc.collect()
        assert freed(make), make.__name__
        del kept


def test_f63_what_is_kept_is_not_collected() -> None:
    outer: Any = Child()
    outer.inner = Child()
    inner = weakref.ref(outer.inner)
    del outer.inner  # the attribute alone; it is still a part
    gc.collect()
    assert inner() is not None
    assert [name for name, _ in outer.named_parameters()] == ["big", "inner.big"]
    block = nn.Sequential(Child())
    gc.collect()
    assert block[0].named_parameters()[0][0] == "big"
