"""Convolution, pooling and norms over one to three axes: sizes as ints and tuples, values, errors."""
from typing import Any, Callable

import numpy as np
import pytest
from halftone import nn


class Fn(nn.Graph):
    """A graph of one module, or of a function."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def build(self, *inputs: nn.Value) -> Any:
        return self.fn(*inputs)


def test_sizes_are_ints_or_tuples() -> None:
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 2, 3, 4)
    weight = np.ones((1, 1, 1, 2, 2), dtype=np.float32)

    def build(x: nn.Value, weight: nn.Value) -> tuple[nn.Value, nn.Value]:
        return (
            nn.conv3d(x, weight, stride=(1, 1, 2)),
            nn.conv_transpose3d(x, weight, stride=2, output_padding=[1, 0, 1]),
        )

    y, up = Fn(build)(x, weight)
    assert y.shape == (1, 1, 2, 2, 2)
    assert y[0, 0, 1, 0, 1] == x[0, 0, 1, :2, 2:].sum()
    assert up.shape == (1, 1, 4, 6, 9)
    assert up.sum() == 4 * x.sum()


def test_layers_of_every_rank() -> None:
    x = np.random.default_rng(0).standard_normal((2, 4, 8)).astype(np.float32)
    rows = nn.Sequential(
        nn.Conv1d(4, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.MaxPool1d(2),
        nn.ConvTranspose1d(8, 4, 2, stride=2),
        nn.InstanceNorm1d(4),
        nn.AdaptiveAvgPool1d(3),
    )
    assert Fn(rows)(x).shape == (2, 4, 3)
    volumes = nn.Sequential(nn.Conv3d(1, 2, (1, 2, 2)), nn.SyncBatchNorm(2), nn.InstanceNorm3d(2))
    assert Fn(volumes)(x.reshape(2, 1, 2, 4, 4)).shape == (2, 2, 2, 3, 3)


def test_functions() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    mean, largest = Fn(
        lambda x: (nn.adaptive_avg_pool2d(x, 1), nn.adaptive_max_pool2d(x, (1, 3)))
    )(x)
    assert mean.tolist() == [[[[2.5]], [[8.5]]]]
    assert largest.tolist() == [[[[3, 4, 5]], [[9, 10, 11]]]]
    rows = Fn(lambda x: nn.rms_norm(x, [3], eps=0.0))(x)
    np.testing.assert_allclose((rows**2).mean(axis=-1), 1, rtol=1e-6)
    groups = Fn(lambda x: nn.group_norm(x, 1))(x)
    np.testing.assert_allclose(groups.mean(), 0, atol=1e-6)


def test_errors() -> None:
    with pytest.raises(TypeError, match=r"kernel_size is \(1, 2\); expected an int or three ints"):
        nn.Conv3d(1, 1, (1, 2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="groups is 2; expected a divisor of 3 and 4 channels"):
        nn.ConvTranspose2d(3, 4, 2, groups=2)
    with pytest.raises(ValueError, match="conv1d: x is f32"):
        Fn(lambda x: nn.conv1d(x, x))(np.zeros((2, 2), dtype=np.float32))
