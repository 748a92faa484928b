"""Trains a multi-layer perceptron on two interleaved spirals, with mixed precision."""
import numpy as np

from halftone import amp, nn, optim


class Spirals(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(2, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 2)
        self.optimizer = self.add_optimizer(
            optim.Adam(self.parameters(), lr=0.01), lr_sch=optim.CosineLR(t_max=400)
        )
        self.config.enable_amp(True, dtype="float16")
        self.scaler = self.set_grad_scaler(amp.GradScaler(init_scale=4096))

    def build(self, x: nn.Value, y: nn.Value) -> tuple[nn.Value, nn.Value]:
        h = nn.tanh(self.fc2(nn.tanh(self.fc1(x))))
        logits = self.fc3(h)
        loss = nn.cross_entropy(logits, y)
        loss.backward()
        return loss, nn.argmax(logits, axis=1)


t = np.linspace(0.2, 3 * np.pi, 200)
spiral = np.stack([t * np.cos(t), t * np.sin(t)], axis=1) / 8
points = np.concatenate([spiral, -spiral]).astype(np.float32)
labels = np.repeat(np.arange(2), 200)

model = Spirals()
for step in range(400):
    loss, guess = model(points, labels)
print(f"loss {loss:.4f}, accuracy {np.mean(guess == labels):.3f}, scale {model.scaler.scale:g}")
print(model.amp_summary())
assert np.mean(guess == labels) > 0.99
