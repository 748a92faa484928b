"""wheel.py BUILD WORK: installs the wheel of a build into a fresh virtual environment, without
network, and trains a small model there with the libraries that the wheel has brought."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent

TRAIN = """
import re, sys
from pathlib import Path
import halftone
home = Path(halftone.__file__).parent
assert Path(sys.prefix) in home.parents, home
exec(compile(Path(sys.argv[1]).read_text(), sys.argv[1], "exec"))
loaded = {Path(path) for path in re.findall(r"/\\S+\\.so\\S*", Path("/proc/self/maps").read_text())}
brought = {path.name for path in (home / "libs").iterdir() if not path.name.startswith("libhalftone")}
assert any(name.startswith("libdnnl.so") for name in brought), brought
others = {path for path in loaded if path.name in brought and path.parent != home / "libs"}
assert not others, f"not from the wheel: {others}"
assert (home / "libs" / "libhalftone_mpi.so").exists() == (sys.argv[2] == "True")
print(f"trained with halftone {halftone.__version__} and {len(brought)} libraries of the wheel")
"""


def run(*command: object) -> None:
    # Nothing of the build or of the user.
    kept = {"PATH", "HOME", "LANG", "OMP_WAIT_POLICY", "TMPDIR"}
    environment = {key: value for key, value in os.environ.items() if key in kept}
    subprocess.run([str(word) for word in command], check=True, env=environment, cwd=work)


build, work = Path(sys.argv[1]), Path(sys.argv[2])
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
# NumPy, which the wheel requires, and pip are those of the system.
run(sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", work / "env")
python = work / "env" / "bin" / "python"
run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-cache-dir",
    f"--config-settings=build-dir={build}", SOURCE / "python_stub")
has_mpi = (build / "libhalftone_mpi.so").exists()
run(python, "-c", TRAIN, SOURCE / "python_stub" / "examples" / "train_mlp.py", has_mpi)
