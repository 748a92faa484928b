"""The model behind docs/scaling.md, by numbers that can be checked by hand."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    path = ROOT / "benchmarks" / "scaling_model.py"
    spec = importlib.util.spec_from_file_location("scaling_model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling_model"] = module
    spec.loader.exec_module(module)
    return module


model = load()


def test_one_rank_exchanges_nothing() -> None:
    job = model.Job(compute=1.5, mib=100, last_mib=10, buckets=4)
    assert model.step_seconds(job, 1, 1e-3, 1e6) == 1.5


def test_an_exchange_takes_its_messages_and_bytes() -> None:
    # 4 ranks: 6 messages of 1 ms, and 3/2 of 1 MiB at 1 MiB/s.
    assert model.exchange_seconds(1, 1, 4, 1e-3, 2**20) == pytest.approx(1.506)


def test_backward_hides_all_but_the_last_bucket() -> None:
    job = model.Job(compute=30, mib=10, last_mib=1, buckets=10)
    # 2 ranks: 10 MiB take 10 s, of which 9 are hidden.
    assert model.step_seconds(job, 2, 0, 2**20) == pytest.approx(31)
    # A network that is behind: 60 s, of which 20 are hidden.
    assert model.step_seconds(job, 2, 0, 2**20 / 6) == pytest.approx(70)


def test_the_page_has_its_tables() -> None:
    page = (ROOT / "docs" / "scaling.md").read_text()
    commands = re.findall(r"scaling_model.py --compute (\S+) --mib (\S+) --last-mib (\S+) --buckets (\d+)", page)
    assert len(commands) == 2
    for compute, mib, last, buckets in commands:
        job = model.Job(float(compute), float(mib), float(last), int(buckets))
        assert model.table(job) in page
