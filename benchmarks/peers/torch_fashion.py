#!/usr/bin/env python3
"""ResNet-18 on Fashion-MNIST in PyTorch: the recipe of `examples/fashion_mnist --model resnet18`.

usage: torch_fashion.py [--amp off|bf16] [--epochs N] [--batch N] [--lr X] [--threads N] [--data FOLDER] [--limit N]
Prints one JSON line: the share of right answers on the test images after each epoch.
"""
import argparse, gzip, json, os, time
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F


class BasicBlock(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or cin != width:
            self.downsample = nn.Sequential(nn.Conv2d(cin, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Sequential):
    def __init__(self, classes=10, channels=1):
        blocks = [BasicBlock(64 << max(stage - 1, 0) if first else 64 << stage, 64 << stage, 2 if stage and first else 1)
                  for stage in range(4) for first in (True, False)]
        super().__init__(nn.Conv2d(channels, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def read(folder, part, limit):
    def bytes_of(name, head):
        with gzip.open(os.path.join(folder, f'{part}-{name}-ubyte.gz')) as file: return np.frombuffer(file.read(), np.uint8)[head:]
    images, labels = bytes_of('images-idx3', 16).reshape(-1, 1, 28, 28), bytes_of('labels-idx1', 8)
    n = limit or len(labels)
    return torch.from_numpy(images[:n].copy()).float() / 255, torch.from_numpy(labels[:n].astype(np.int64))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--amp', default='off', choices=('off', 'bf16')); ap.add_argument('--epochs', type=int, default=3)
    ap.add_argument('--batch', type=int, default=128); ap.add_argument('--lr', type=float, default=1e-3)
    ap.add_argument('--threads', type=int, default=2); ap.add_argument('--limit', type=int, default=0)
    ap.add_argument('--data', default='/usr/share/datasets/fashion-mnist')
    a = ap.parse_args()
    torch.set_num_threads(a.threads); torch.manual_seed(0)
    (x, y), (test_x, test_y) = (read(a.data, part, a.limit) for part in ('train', 't10k'))
    model = ResNet18()
    optimizer = torch.optim.Adam(model.parameters(), lr=a.lr)
    low = lambda: torch.autocast('cpu', dtype=torch.bfloat16, enabled=a.amp == 'bf16')
    accuracy, start = [], time.time()
    for _ in range(a.epochs):
        model.train()
        for i in torch.randperm(len(y)).split(a.batch):
            optimizer.zero_grad()
            with low(): scores = model(x[i])
            F.cross_entropy(scores.float(), y[i]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad(), low():
            right = sum((model(test_x[i]).argmax(1) == test_y[i]).sum().item() for i in torch.arange(len(test_y)).split(a.batch))
        accuracy.append(right / len(test_y))
    print(json.dumps(dict(name='resnet18_fashion', torch=torch.__version__.split('+')[0], amp=a.amp, params=sum(p.numel() for p in model.parameters()),
                          test_accuracy=accuracy, seconds=round(time.time() - start))), flush=True)


if __name__ == '__main__':
    main()
