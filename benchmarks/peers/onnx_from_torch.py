"""Models that PyTorch exports, run by halftone_run: values agree to 1e-4.

By hand, with torch, onnx and onnxscript: python onnx_from_torch.py build/release/tools/halftone_run
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 2 * channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(2 * channels)
        self.conv2 = nn.Conv2d(2 * channels, 2 * channels, 3, 1, 1, groups=2)
        self.down = nn.Conv2d(channels, 2 * channels, 1, stride)

    def forward(self, x):
        return F.relu(self.conv2(F.relu(self.bn1(self.conv1(x)))) + self.down(x))


class Network(nn.Module):
    """A residual network with a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Residual(16, 1), Residual(32, 2), Residual(64, 2))
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class Decoder(nn.Module):
    """A language model of two blocks, causal."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(100, 32), nn.Embedding(16, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, activation="gelu")
        self.layers = nn.ModuleList([layer, nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)])
        self.norm = nn.LayerNorm(32)

    def forward(self, ids):
        length = ids.shape[1]
        x = self.tokens(ids) + self.places(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.norm(x) @ self.tokens.weight.T


class Upscaler(nn.Module):
    """Pictures to larger ones: transposed convolution, pixel shuffle, interpolation, skip."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, 2, 1)
        self.up = nn.ConvTranspose2d(8, 8, 4, 2, 1)
        self.out = nn.Conv2d(11, 12, 3, 1, 1)
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x):
        y = self.up(F.leaky_relu(self.norm(self.down(x)), 0.2))
        y = F.pixel_shuffle(self.out(torch.cat([x, y], 1)), 2)
        return torch.tanh(y) + F.interpolate(x, scale_factor=2, mode="bilinear")


class Recurrent(nn.Module):
    """Sequences both ways, then one way."""

    def __init__(self):
        super().__init__()
        self.both = nn.LSTM(8, 12, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(24, 10)

    def forward(self, x):
        y, (h, c) = self.both(x)
        return torch.cat([self.gru(y)[0][..., :8], x], 1) + h.mean() * c.sum()


def main():
    program, worst = sys.argv[1], 0.0
    torch.manual_seed(0)
    picture = torch.randn(2, 3, 32, 32)
    cases = [("network", Network(), picture), ("decoder", Decoder(), torch.randint(0, 100, (2, 12))),
             ("upscaler", Upscaler(), picture), ("recurrent", Recurrent(), torch.randn(3, 7, 8))]
    for name, model, x in cases:
        model.eval()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            torch.onnx.export(model, (x,), path / "model.onnx", dynamo=True, external_data=False)
            import onnx
            proto = onnx.load(path / "model.onnx")
            feed = proto.graph.input[0].name
            np.save(path / "x.npy", x.numpy())
            run = subprocess.run(
                [program, path / "model.onnx", "--feed", f"{feed}={path}/x.npy", "--out", path / "out"],
                capture_output=True, text=True)
            if run.returncode:
                print(f"{name}: {run.stderr}")
                worst = np.inf
                continue
            got = np.load(next((path / "out").iterdir()))
            wanted = model(x).detach().numpy()
            error = np.abs(got - wanted).max() / max(1.0, np.abs(wanted).max())
            worst = max(worst, error)
            operators = sorted({n.op_type for n in proto.graph.node})
            print(f"{name}: opset {proto.opset_import[0].version}, {len(proto.graph.node)} nodes, error {error:.2e}; {' '.join(operators)}")
    sys.exit(0 if worst <= 1e-4 else 1)


if __name__ == "__main__":
    main()
