"""Prints the rows of scaler_trajectory_test.cc: PyTorch's GradScaler over 10,000 steps, some of
whose gradients are infinite. Needs torch; nothing of the build runs it.

    python tests/nn/torch_grad_scaler.py
"""
import struct

import torch

STEPS = 10_000
# Growth factor, backoff factor, growth interval, bad steps of 10,000, seed; what is loaded before
# step 5,000 (growth factor, backoff factor, interval), or nothing.
SETTINGS = [
    (2.0, 0.5, 1, 4_500, 1, None),
    (2.0, 0.5, 2, 2_000, 2, None),
    (2.0, 0.5, 2_000, 4, 3, None),
    (1.5, 0.75, 2, 3_000, 4, None),
    (2.0, 0.5, 2, 2_000, 5, (4.0, 0.25, 3)),
    (2.0, 0.5, 2_000, 4, 6, (1.25, 0.9, 2_500)),
]


def is_bad(step: int, seed: int, rate: int) -> bool:
    """A hash of the step, the same lines in the test."""
    x = (step * 0x9E3779B97F4A7C15 + seed * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    x ^= x >> 31
    x = (x * 0x94D049BB133111EB) & (2**64 - 1)
    x ^= x >> 29
    return x % 10_000 < rate


def trajectory(growth, backoff, interval, rate, seed, loaded):
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler(
        "cpu", growth_factor=growth, backoff_factor=backoff, growth_interval=interval
    )
    digest = 0xCBF29CE484222325  # FNV-1a over the bits of every scale and growth tracker
    skipped = 0
    for step in range(STEPS):
        if step == STEPS // 2 and loaded is not None:
            state = scaler.state_dict()
            state["growth_factor"], state["backoff_factor"], state["growth_interval"] = loaded
            scaler.load_state_dict(state)
        bad = is_bad(step, seed, rate)
        skipped += bad
        optimizer.zero_grad()
        scaler.scale((weight * (float("inf") if bad else 1.0)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        state = scaler.state_dict()
        for byte in struct.pack("<fi", state["scale"], state["_growth_tracker"]):
            digest = ((digest ^ byte) * 0x100000001B3) & (2**64 - 1)
    return state["scale"], state["_growth_tracker"], skipped, digest


if __name__ == "__main__":
    print(f"// torch {torch.__version__}")
    for setting in SETTINGS:
        scale, tracker, skipped, digest = trajectory(*setting)
        growth, backoff, interval, rate, seed, loaded = setting
        after = "std::nullopt" if loaded is None else "LoadedOptions{%s}" % ", ".join(map(str, loaded))
        print(
            f"Trajectory{{{growth}, {backoff}, {interval}, {rate}, {seed}, {after}, "
            f"{float(scale).hex()}, {tracker}, {skipped}, 0x{digest:016x}u}},"
        )
