"""Several processes: the sampler, and a job that mpirun starts."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from halftone import distributed, nn

EXAMPLE = Path(__file__).parents[2] / "python_stub" / "examples" / "train_distributed.py"
# Root and few cores are handled here, not by the user (tests/distributed/job.cc).
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_plm_rsh_agent": "false",
}


def test_one_process_is_a_job_of_one() -> None:
    assert distributed.rank() == 0
    assert distributed.size() == 1
    assert distributed.local_rank() == 0
    assert distributed.sum(2.5) == 2.5
    distributed.barrier()


def test_samplers_of_two_ranks_take_what_one_takes() -> None:
    one = distributed.Sampler(20, 6, seed=3, ranks=1, rank=0)
    two = [distributed.Sampler(20, 3, seed=3, ranks=2, rank=rank) for rank in (0, 1)]
    for sampler in (one, *two):
        sampler.set_epoch(1)
    assert len(one) == len(two[0]) == 3
    for step, whole in enumerate(one):
        assert np.array_equal(whole, np.concatenate([two[0][step], two[1][step]]))
    assert len(distributed.Sampler(20, 6, tail="pad")) == 4


def test_errors() -> None:
    with pytest.raises(ValueError, match="tail is"):
        distributed.Sampler(20, tail="cut")
    with pytest.raises(ValueError, match="rank is 2 of 2"):
        distributed.Sampler(20, rank=2, ranks=2)
    with pytest.raises(IndexError):
        distributed.Sampler(20, 20)[1]
    with pytest.raises(ValueError, match="reduction"):
        nn.Graph().config.data_parallel(reduction="max")


def losses(ranks: int, *options: str) -> list[float]:
    run = subprocess.run(
        ["mpirun", "-n", str(ranks), sys.executable, str(EXAMPLE), *options],
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "MPI is not installed" in run.stderr:
        pytest.skip("Halftone was built without MPI")
    assert run.returncode == 0, run.stdout + run.stderr
    return [float(loss) for loss in re.findall(r"loss (\S+)", run.stdout)]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_two_ranks_train_as_one_does() -> None:
    one, two = losses(1), losses(2)
    assert len(one) == 12
    assert two == pytest.approx(one, rel=1e-4)
    assert losses(2, "--shard") == two
