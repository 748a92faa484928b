"""Functions that are formulas of others: spelled as in PyTorch, beside NumPy's values."""
import math
from typing import Any

import numpy as np
from halftone import nn
from test_graphs import run

X = np.array([[-2.5, 0.4, 1.5], [0.3, 2.0, -1.0]], np.float32)
W = X.astype(np.float64)


def near(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=2e-6)


def test_statistics() -> None:
    near(run(lambda x: nn.var(x, 1), X), W.var(1, ddof=1))
    near(run(lambda x: nn.var(x, correction=0), X), W.var())
    near(run(lambda x: nn.std(x, 0, keepdim=True), X), W.std(0, ddof=1, keepdims=True))
    near(run(lambda x: nn.norm(x), X), np.linalg.norm(W))
    near(run(lambda x: nn.norm(x, 1, 1), X), np.abs(W).sum(1))
    near(run(lambda x: nn.norm(x, p=math.inf, axes=1), X), np.abs(W).max(1))
    near(run(lambda x: nn.logsumexp(x, 1), X), np.log(np.exp(W).sum(1)))


def parts(split: Any) -> Any:
    return [p.tolist() for p in run_all(split)]


class Parts(nn.Graph):
    def __init__(self, split: Any) -> None:
        super().__init__()
        self.split = split

    def build(self, x: nn.Value) -> Any:
        return tuple(self.split(x))


def run_all(split: Any) -> Any:
    return Parts(split)(np.arange(5, dtype=np.float32))


def test_parts_of_an_axis() -> None:
    assert parts(lambda x: nn.split(x, 2)) == [[0, 1], [2, 3], [4]]
    assert parts(lambda x: nn.split(x, [1, 4])) == [[0], [1, 2, 3, 4]]
    assert parts(lambda x: nn.split(x, [5])) == [[0, 1, 2, 3, 4]]
    assert parts(lambda x: nn.chunk(x, 2, axis=0)) == [[0, 1, 2], [3, 4]]
    assert parts(lambda x: [nn.stack([x, x], -1)]) == [[[i, i] for i in range(5)]]


def test_einsum_and_repetitions() -> None:
    near(run(lambda x: nn.einsum("ij,kj->ik", [x, x]), X), W @ W.T)
    near(run(lambda x: nn.tile(x, [2, 1]), X), np.tile(W, (2, 1)))
    near(run(lambda x: nn.repeat_interleave(x, 2, axis=1), X), W.repeat(2, axis=1))
    near(run(lambda x: nn.pixel_shuffle(nn.reshape(x, [1, 1, 2, 3]), 1), X), W[None, None])
    assert run(lambda x: nn.arange(1, 6, 2), X).tolist() == [1, 3, 5]
    near(run(lambda x: nn.index_select(x, 1, nn.arange(2)), X), W[:, :2])


def test_orders() -> None:
    near(run(lambda x: nn.sort(x)[0], X), np.sort(W))
    np.testing.assert_array_equal(run(lambda x: nn.argsort(x, descending=True), X), np.argsort(-W))
    near(run(lambda x: nn.topk(x, 2, largest=False)[0], X), np.sort(W)[:, :2])
    near(run(lambda x: nn.max_with_indices(x, 1)[0], X), W.max(1))
    near(run(lambda x: nn.min(x), X), W.min())
    near(run(lambda x: nn.take_along_dim(x, nn.argsort(x), 1), X), np.sort(W))
    near(run(lambda x: nn.cumsum(x, 1), X), W.cumsum(1))
    near(run(lambda x: nn.prod(x), X), W.prod())
    near(run(lambda x: nn.flip(x, [0, 1]), X), W[::-1, ::-1])
    near(run(lambda x: nn.pad(x, [1, 2], mode="reflect"), X), np.pad(W, ((0, 0), (1, 2)), "reflect"))


def test_interpolate() -> None:
    image = X.reshape(1, 1, 2, 3)
    doubled = image.repeat(2, axis=2).repeat(2, axis=3)
    near(run(lambda x: nn.interpolate(x, scale_factor=2), image), doubled)
    near(run(lambda x: nn.interpolate(x, size=(4, 6)), image), doubled)
    near(run(lambda x: nn.interpolate(x, scale_factor=(2.0, 2)), image), doubled)
    got = run(lambda x: nn.interpolate(x, size=[2, 5], mode="bilinear", align_corners=True), image)
    near(got[0, 0, :, ::2], W)


def test_random_numbers() -> None:
    got = run(lambda x: nn.rand([1000], dtype="float64"), X)
    assert got.dtype == np.float64 and 0 <= got.min() and got.max() < 1
    assert abs(run(lambda x: nn.randn([1000]), X).mean()) < 0.2
    near(run(lambda x: nn.normal(2, 0, [3]), X), [2, 2, 2])
    assert set(run(lambda x: nn.bernoulli(nn.uniform(0, 1, [100])), X)) == {0, 1}


def test_one_hot() -> None:
    assert run(lambda x: nn.one_hot(x, 3), np.array([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_losses() -> None:
    t = np.array([[0, 1, 1], [1, 0, 0]], np.float32)
    p = 1 / (1 + np.exp(-W))
    each = -(t * np.log(p) + (1 - t) * np.log(1 - p))
    probabilities = p.astype(np.float32)
    near(run(nn.binary_cross_entropy_with_logits, X, t), each.mean())
    near(run(lambda x, y: nn.binary_cross_entropy(x, y, reduction="sum"), probabilities, t), each.sum())
    weighted = run(lambda x, y: nn.binary_cross_entropy_with_logits(x, y, pos_weight=y * 2), X, t)
    near(weighted, (each * (1 + t)).mean())
    d = np.abs(W - t)
    near(run(nn.smooth_l1_loss, X, t), np.where(d < 1, d * d / 2, d - 0.5).mean())
    huber = run(lambda x, y: nn.huber_loss(x, y, delta=2.0), X, t)
    near(huber, np.where(d < 2, d * d / 2, 2 * (d - 1)).mean())
    near(run(nn.nll_loss, X, np.array([2, 0])), -(W[0, 2] + W[1, 0]) / 2)
    near(run(nn.cosine_similarity, X, t), (W * t).sum(1) / np.linalg.norm(W, axis=1) / [2**0.5, 1])
