"""Matrix products on 8-bit operands, and the names of their dtypes."""
from typing import Optional

import numpy as np
import pytest
from halftone import amp, nn, optim

BATCH, WIDTH, CLASSES = 32, 48, 16
X = np.random.default_rng(1).standard_normal((BATCH, WIDTH)).astype(np.float32)
LABELS = np.arange(BATCH, dtype=np.int64) % CLASSES


class Model(nn.Graph):
    """Two linear layers, trained."""

    def __init__(self, dtype: Optional[str] = None, policy: Optional[amp.Policy] = None) -> None:
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, 64)
        self.fc2 = nn.Linear(64, CLASSES)
        self.add_optimizer(optim.SGD(self.parameters(), lr=0.1))
        self.config.enable_amp(dtype=dtype, policy=policy)

    def build(self, x: nn.Value, labels: nn.Value) -> nn.Value:
        loss = nn.cross_entropy(self.fc2(nn.relu(self.fc1(x))), labels)
        loss.backward()
        return loss


def check(model: Model) -> None:
    losses = [float(model(X, LABELS)) for _ in range(40)]
    assert losses[-1] < 0.7 * losses[0]
    assert "2 of them on 8-bit operands" in model.amp_table()
    # x, w and dy of two layers: a scale and a history each.
    assert len([name for name in model.state_dict() if name.startswith("f8.")]) == 12


def test_products_are_in_8_bits_and_train() -> None:
    check(Model(dtype="f8"))
    check(Model(policy=amp.Policy("float8_e4m3fn")))


def test_only_the_forward_format_is_asked_for() -> None:
    with pytest.raises(ValueError, match="dtype is f8e5m2; expected f16, bf16 or f8"):
        Model(dtype="float8_e5m2")(X, LABELS)
