#!/usr/bin/env python3
"""Training-step times of the reference workloads in PyTorch on this machine's CPU or its first CUDA device.

usage: torch_workloads.py [--only NAME,...] [--device cpu|cuda] [--mode eager|compile|reduce-overhead] [--amp off,bf16,f16] [--threads N] [--steps N] [--channels-last] [--fused] [--eval] [--batch N]
Prints one JSON line per workload and precision: median step seconds (forward + backward + optimizer step), peak RSS in MiB.
On the CPU of single steps; on CUDA of blocks of --steps steps, inputs copied in from page-locked memory in each step.
Modules have the names of benchmarks/support/workloads.cc; shapes, batch sizes and optimizers are the same: change both together.
"""
import argparse, json, resource, statistics, time
import torch, torch.nn as nn, torch.nn.functional as F


class MLP(nn.Sequential):
    def __init__(self): super().__init__(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


class FashionCNN(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 14 * 14, 128), nn.ReLU(), nn.Linear(128, 10))


class Bottleneck(nn.Module):
    def __init__(self, cin, mid, stride):
        super().__init__()
        cout = mid * 4
        self.conv1, self.bn1 = nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv2, self.bn2 = nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv3, self.bn3 = nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50Trunk(nn.Module):
    """What lies before the classifier."""
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        cin = 64
        for stage, (mid, n, s) in enumerate(((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)), start=1):
            blocks = []
            for i in range(n):
                blocks.append(Bottleneck(cin, mid, s if i == 0 else 1)); cin = mid * 4
            self.add_module(f'layer{stage}', nn.Sequential(*blocks))

    def features(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        feats = []
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x); feats.append(x)
        return feats


class ResNet50(ResNet50Trunk):
    def __init__(self, classes=1000):
        super().__init__()
        self.fc = nn.Linear(2048, classes)

    def forward(self, x): return self.fc(self.features(x)[-1].mean((2, 3)))


class Block(nn.Module):
    def __init__(self, d, h, ff, causal, prenorm):
        super().__init__()
        self.h, self.causal, self.prenorm = h, causal, prenorm
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc1, self.fc2 = nn.Linear(d, ff), nn.Linear(ff, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def attn(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        if hasattr(F, 'scaled_dot_product_attention'):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            a = q @ k.transpose(-1, -2) * (d // self.h) ** -0.5
            if self.causal: a = a.masked_fill(torch.ones(s, s, dtype=torch.bool, device=x.device).triu(1), float('-inf'))
            y = a.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, s, d))

    def forward(self, x):
        if self.prenorm:
            x = x + self.attn(self.norm1(x))
            return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.fc2(F.gelu(self.fc1(x))))


class Transformer(nn.Module):
    def __init__(self, vocab, seq, d, h, layers, causal):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, d), nn.Embedding(seq, d)
        self.blocks = nn.Sequential(*[Block(d, h, 4 * d, causal, causal) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


class EDSRBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x): return x + self.conv2(F.relu(self.conv1(x)))


class EDSR(nn.Module):
    def __init__(self, c=64, n=16):
        super().__init__()
        self.head = nn.Conv2d(3, c, 3, padding=1)
        self.body = nn.Sequential(*[EDSRBlock(c) for _ in range(n)])
        self.tail = nn.Conv2d(c, c, 3, padding=1)
        self.up = nn.Sequential(nn.Conv2d(c, 4 * c, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(c, 4 * c, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, x):
        x = self.head(x)
        return self.up(x + self.tail(self.body(x)))


class SSD512(nn.Module):
    """ResNet-50 trunk, extra stages down to 1x1, 3x3 class and box heads on seven scales; 18,432 anchors."""
    ANCHORS = (4, 6, 6, 6, 6, 4, 4)

    def __init__(self, classes=21):
        super().__init__()
        self.num_classes = classes
        self.trunk = ResNet50Trunk()
        extra, cin = [], 2048
        for c in (512, 512, 256, 256, 256):
            extra.append(nn.Sequential(nn.Conv2d(cin, c // 2, 1), nn.ReLU(), nn.Conv2d(c // 2, c, 3, 2, 1), nn.ReLU())); cin = c
        self.extra = nn.ModuleList(extra)
        chans = (512, 2048, 512, 512, 256, 256, 256)
        self.classes = nn.ModuleList([nn.Conv2d(c, a * classes, 3, padding=1) for c, a in zip(chans, self.ANCHORS)])
        self.boxes = nn.ModuleList([nn.Conv2d(c, a * 4, 3, padding=1) for c, a in zip(chans, self.ANCHORS)])

    def forward(self, x):
        _, f, _, g = self.trunk.features(x)
        feats = [f, g]
        for e in self.extra:
            g = e(g); feats.append(g)
        b = x.shape[0]
        cls = torch.cat([h(f).permute(0, 2, 3, 1).reshape(b, -1, self.num_classes) for h, f in zip(self.classes, feats)], 1)
        box = torch.cat([h(f).permute(0, 2, 3, 1).reshape(b, -1, 4) for h, f in zip(self.boxes, feats)], 1)
        return cls, box


def ssd_loss(out, tgt):
    (cls, box), (tc, tb) = out, tgt
    ce = F.cross_entropy(wide(cls).flatten(0, 1), tc.flatten(), reduction='none').view_as(tc)
    pos = tc > 0
    rank = ce.masked_fill(pos, -1.).argsort(1, descending=True).argsort(1)  # hard negatives, 3 to 1
    keep = pos | (rank < 3 * pos.sum(1, keepdim=True))
    n = pos.sum().clamp(min=1)
    sl1 = F.smooth_l1_loss(wide(box), tb, reduction='none').sum(-1)
    return ((ce * keep).sum() + (sl1 * pos).sum()) / n


def wide(x):
    """16 bit as f32."""
    return x if x.dtype == torch.float64 else x.float()


def ce(out, y): return F.cross_entropy(wide(out), y)


def l1(out, y): return F.l1_loss(wide(out), y)


def workloads(fused=False):
    """name, model, random data, loss, optimizer, timed steps of each."""
    options = dict(fused=True) if fused else {}
    sgd = lambda p: torch.optim.SGD(p, lr=1e-3, **options)
    mom = lambda lr: lambda p: torch.optim.SGD(p, lr=lr, momentum=0.9, weight_decay=1e-4, **options)
    adamw = lambda p: torch.optim.AdamW(p, lr=1e-4, **options)
    adam = lambda p: torch.optim.Adam(p, lr=1e-4, **options)
    r, ri = torch.randn, torch.randint
    yield 'mlp', MLP, lambda: (r(128, 256), ri(10, (128,))), ce, sgd, 300
    yield 'fashion_cnn', FashionCNN, lambda: (r(128, 1, 28, 28), ri(10, (128,))), ce, adam, 20
    yield 'resnet50', ResNet50, lambda: (r(16, 3, 224, 224), ri(1000, (16,))), ce, mom(1e-2), 3
    yield 'bert_base', lambda: Transformer(30522, 128, 768, 12, 12, False), lambda: (ri(30522, (8, 128)), ri(30522, (1024,))), ce, adamw, 3
    yield 'gpt2_small', lambda: Transformer(50257, 256, 768, 12, 12, True), lambda: (ri(50257, (4, 256)), ri(50257, (1024,))), ce, adamw, 3
    yield 'edsr', EDSR, lambda: (r(8, 3, 48, 48), r(8, 3, 192, 192)), l1, adam, 5
    yield 'ssd512_resnet50', SSD512, lambda: (r(2, 3, 512, 512), None), ssd_loss, mom(1e-4), 3


def make_data(data, model, device, channels_last):
    """Inputs and targets on the host, page-locked where a device copies them in."""
    x, y = data()
    if channels_last and x.dim() == 4: x = x.contiguous(memory_format=torch.channels_last)
    if y is None:
        with torch.no_grad(): n = model(x.to(device))[0].shape[1]
        y = ((torch.rand(x.shape[0], n) < 0.01).long() * torch.randint(1, 21, (x.shape[0], n)), torch.randn(x.shape[0], n, 4))
    pin = (lambda t: t.pin_memory()) if device == 'cuda' else (lambda t: t)
    return pin(x), tuple(map(pin, y)) if isinstance(y, tuple) else pin(y)


def first_rows(x, y, batch):
    """Of inputs and targets: those of the first `batch` images or sequences; targets of several rows each come with them."""
    if not 0 < batch <= x.shape[0]: raise SystemExit(f'--batch: {batch}; expected 1..{x.shape[0]}')
    cut = lambda t: t[:batch * t.shape[0] // x.shape[0]]
    return x[:batch], tuple(map(cut, y)) if isinstance(y, tuple) else cut(y)


def time_cpu(step, steps):
    """Median seconds of single steps."""
    ts = []
    for _ in range(steps):
        t0 = time.perf_counter(); step(); ts.append(time.perf_counter() - t0)
    return dict(step_s=statistics.median(ts))


def time_cuda(step, steps, blocks):
    """Median over blocks of steps of the seconds a step takes: by the host's clock between two waits for
    the device, as benchmarks/train_step does it, and between two events on the stream."""
    wall, event = [], []
    for block in range(blocks + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        t0 = time.perf_counter()
        begin.record()
        for _ in range(steps): step()
        end.record()
        torch.cuda.synchronize()
        if block == 0: continue  # warm-up
        wall.append((time.perf_counter() - t0) / steps)
        event.append(begin.elapsed_time(end) / 1e3 / steps)
    return dict(step_s=statistics.median(wall), event_step_s=statistics.median(event))


def measure(a, name, make, data, loss_fn, make_opt, steps, amp):
    torch.manual_seed(0)
    cuda = a.device == 'cuda'
    model = make().train(not a.eval).to(a.device)
    if a.channels_last: model = model.to(memory_format=torch.channels_last)
    x, y = make_data(data, model, a.device, a.channels_last)
    if a.batch: x, y = first_rows(x, y, a.batch)
    opt = make_opt(model.parameters())
    if a.mode == 'eager': fwd = model
    else: fwd = torch.compile(model, mode='default' if a.mode == 'compile' else a.mode)
    dtype = {'f16': torch.float16, 'bf16': torch.bfloat16}.get(amp)
    scaler = torch.amp.GradScaler('cuda', enabled=amp == 'f16') if cuda else None

    def to_device(t): return t.to(a.device, non_blocking=True)

    def step():
        # From the host in each step, as a graph of Halftone takes its inputs.
        x_now, y_now = (to_device(x), tuple(map(to_device, y)) if isinstance(y, tuple) else to_device(y)) if cuda else (x, y)
        opt.zero_grad(set_to_none=True)
        with torch.inference_mode(a.eval), torch.autocast(a.device, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = loss_fn(fwd(x_now), y_now)
        if a.eval: return loss
        if scaler is not None and scaler.is_enabled():
            scaler.scale(loss).backward(); scaler.step(opt); scaler.update()
        else:
            loss.backward(); opt.step()
        return loss
    t0 = time.time(); step()
    if cuda: torch.cuda.synchronize()
    first = time.time() - t0
    for _ in range(2): step()
    steps = a.steps or steps
    times = time_cuda(step, steps, a.blocks) if cuda else time_cpu(step, steps)
    result = dict(name=name, framework='torch ' + torch.__version__, device=a.device, mode=a.mode, amp=amp, channels_last=a.channels_last, fused=a.fused,
                  threads=a.threads, eval=a.eval, batch=x.shape[0], **{k: round(v, 7) for k, v in times.items()}, first_step_s=round(first, 3),
                  params=sum(p.numel() for p in model.parameters()), loss=round(step().item(), 4),
                  peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    if cuda: result.update(card=torch.cuda.get_device_name(), device_peak_mib=torch.cuda.max_memory_allocated() >> 20)
    print(json.dumps(result), flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--only'); ap.add_argument('--mode', default='eager', choices=('eager', 'compile', 'reduce-overhead'))
    ap.add_argument('--amp', default='off', help='off, bf16, f16 (cuda only), or several: off,f16')
    ap.add_argument('--device', default='cpu', choices=('cpu', 'cuda')); ap.add_argument('--blocks', type=int, default=15, help='blocks of steps timed on cuda')
    ap.add_argument('--threads', type=int, default=2); ap.add_argument('--steps', type=int); ap.add_argument('--channels-last', action='store_true')
    ap.add_argument('--eval', action='store_true', help='forward and loss alone'); ap.add_argument('--batch', type=int, help='images or sequences')
    ap.add_argument('--fused', action='store_true', help='fused optimizers')
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    # f32 is f32, as in Halftone: no TF32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for workload in workloads(a.fused):
        if a.only and workload[0] not in a.only.split(','): continue
        for amp in a.amp.split(','): measure(a, *workload, amp)


if __name__ == "__main__":
    main()
