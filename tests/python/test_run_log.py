"""nn.RunLog: the files themselves are tested in C++ (tests/nn/run_log_test.cc)."""
import gc
import struct
from pathlib import Path

import numpy as np
import pytest
from halftone import nn
from models import Mlp, batch


def payloads(path: str) -> list[bytes]:
    """Of the records: length, its checksum, payload, its checksum."""
    data, found = Path(path).read_bytes(), []
    while data:
        (length,) = struct.unpack_from("<Q", data)
        found.append(data[12 : 12 + length])
        data = data[16 + length :]
    return found


def test_logs_what_it_is_given(tmp_path: Path) -> None:
    model = Mlp()
    log = nn.RunLog(model, str(tmp_path / "run"), items="rows")
    for _ in range(2):
        loss, _ = model(*batch())
        log.add_step({"train/loss": loss, "train/one": 1, "train/np": np.float32(0.5)}, items=5)
    log.skip_time()
    log.add_scalar("test/accuracy", 0.75)
    log.flush()
    assert log.error is None
    version, start, first, second, scalar = payloads(log.path)
    assert b"brain.Event:2" in version
    # simple_value is field 2, of four bytes.
    assert b"train/one\x15" + struct.pack("<f", 1) in first
    assert b"train/np\x15" + struct.pack("<f", 0.5) in first
    assert b"train/loss\x15" + struct.pack("<f", loss) in second
    assert b"optimizer0/learning_rate\x15" + struct.pack("<f", 0.1) in second
    assert b"speed/rows_per_second" in second and b"speed/" not in first
    assert b"test/accuracy\x15" + struct.pack("<f", 0.75) in scalar


def test_writes_at_the_end_and_nothing_unasked(tmp_path: Path) -> None:
    model = Mlp()
    model(*batch())
    log = nn.RunLog(model, str(tmp_path))
    path = log.path
    log.add_step({"a": 1})
    del log
    assert len(payloads(path)) == 3
    silent = nn.RunLog(model, "")
    silent.add_step({"a": 1})
    assert silent.path == "" and silent.error is None


def test_errors(tmp_path: Path) -> None:
    model = Mlp()
    (tmp_path / "file").write_text("")
    log = nn.RunLog(model, str(tmp_path / "file"))
    assert log.error is not None and "file: cannot make the folder: Not a directory" in log.error
    log.add_step({"a": 1})
    with pytest.raises(TypeError):
        log.add_step({"a": "one"})  # type: ignore[dict-item]
    del model
    gc.collect()
    with pytest.raises(RuntimeError, match="RunLog: its graph no longer exists"):
        log.add_step({"a": 1})


def test_a_graph_that_has_its_log_is_collected(tmp_path: Path) -> None:
    class Logged(Mlp):
        def __init__(self) -> None:
            super().__init__()
            self.log = nn.RunLog(self, str(tmp_path))

    model = Logged()
    model(*batch())
    model.log.add_step({"a": 1})
    path = model.log.path
    del model
    gc.collect()
    assert len(payloads(path)) == 3
