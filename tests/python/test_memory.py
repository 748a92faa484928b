"""Values computed again instead of held: recompute() and config.memory_budget."""
from typing import Any

import numpy as np
import pytest
from halftone import nn, optim


class Deep(nn.Graph):
    """Layers with dropout between; returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Sequential(nn.Linear(32, 32), nn.Dropout(0.2), nn.GELU()) for _ in range(8)]
        )
        self.add_optimizer(optim.Adam(self.parameters(), lr=0.01))

    def build(self, x: nn.Value) -> nn.Value:
        for layer in self.layers:
            x = layer(x)
        loss = nn.mean(nn.square(x))
        loss.backward()
        return loss


X = np.random.default_rng(0).standard_normal((256, 32)).astype(np.float32)


def trained(graph: Deep) -> tuple[list[Any], dict[str, Any]]:
    losses = [graph(X) for _ in range(3)]
    return losses, dict(graph.state_dict())


def test_less_memory_and_the_same_bits() -> None:
    plain, half, by_hand = Deep(), Deep(), Deep()
    want, state = trained(plain)
    half.config.memory_budget = plain.arena_bytes // 2
    assert half.config.memory_budget == plain.arena_bytes // 2
    assert by_hand.layers.recompute() is by_hand.layers and by_hand.layers.recomputes
    for graph in (half, by_hand):
        losses, got = trained(graph)
        assert losses == want
        assert got.keys() == state.keys()
        for name, value in state.items():
            np.testing.assert_array_equal(got[name], value, err_msg=name)
        assert graph.arena_bytes < plain.arena_bytes
    assert half.arena_bytes <= plain.arena_bytes // 2
    by_hand.layers.recompute(False)
    assert not by_hand.layers.recomputes


def test_a_budget_that_cannot_be_met_names_the_smallest() -> None:
    graph = Deep()
    graph.config.memory_budget = 100
    with pytest.raises(MemoryError, match=r"memory_budget: 100 bytes; .* no less than \d+"):
        graph(X)


def test_cheap_values_are_held_on_request() -> None:
    plain, held = Deep(), Deep()
    assert plain.config.recompute_cheap_values
    held.config.recompute_cheap_values = False
    want, _ = trained(plain)
    assert trained(held)[0] == want
