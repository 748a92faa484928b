"""States as .npz files: what numpy.savez writes is read in C++, and the other way round."""
import subprocess
from pathlib import Path

import halftone
import numpy as np
import pytest
from models import Mlp, batch

HALFTONE_RUN = Path(halftone.__file__).parents[2] / "tools" / "halftone_run"

# A training step at rate 1: w and b lose their gradients, which are x and 1.
STEP = """
graph @step(%x: f32[2,2]) {
  %w = variable "fc.w" : f32[2,2]
  %b = variable "fc.b" : f32[2,2]
  %y = mul(%w, %x)
  %z = add(%y, %b)
  %l = sum(%z) {axes=[0,1]}
  backward(%l)
  %n, %a = optimizer() {params=["fc.w", "fc.b"], rule="sgd", lr=1.0}
  return loss=%l
}
"""


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_state_passes_through_numpy(save: object, tmp_path: Path) -> None:
    assert callable(save)
    model, other = Mlp("adam"), Mlp("adam")
    model(*batch())
    save(tmp_path / "state.npz", **model.state_dict())
    with np.load(tmp_path / "state.npz") as state:
        other.load_state_dict(dict(state))
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], value)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_program_reads_and_writes_it(save: object, tmp_path: Path) -> None:
    assert callable(save)
    if not HALFTONE_RUN.exists():
        pytest.skip("the tools are not built")
    (tmp_path / "step.txt").write_text(STEP)
    x = np.array([[1, -2], [0.5, 3]], np.float32)
    w = np.asfortranarray(np.array([[1, 2], [3, 4]], np.float32))
    b = np.array([[0, -1], [0.25, 8]], np.float32)
    np.save(tmp_path / "x.npy", x)
    save(tmp_path / "in.npz", **{"fc.w": w, "fc.b": b, "run_count": np.array(5, np.int64)})
    command = [str(HALFTONE_RUN), "step.txt", "--feed=x=x.npy", "--variables=in.npz", "--save=out.npz"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    with np.load(tmp_path / "out.npz") as out:
        assert set(out.files) >= {"fc.w", "fc.b", "run_count"}
        np.testing.assert_array_equal(out["fc.w"], w - x)
        np.testing.assert_array_equal(out["fc.b"], b - 1)
        assert out["run_count"] == 6
