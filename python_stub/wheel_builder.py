"""Makes a wheel of the Python module: the PEP 517 backend that pyproject.toml names.

    pip install ./python_stub
    pip install --config-settings=build-dir=build/release ./python_stub    # of a build that is there

The wheel has the module, its stubs, and in halftone/libs the shared libraries that are not part of
every system (oneDNN, protobuf, Abseil, OpenMP), which the module finds by its run path.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import Optional

SOURCE = Path(__file__).resolve().parent.parent
# What a Python extension may expect of any system. Source: PEP 599, "The manylinux2014 policy".
SYSTEM_LIBRARIES = re.compile(
    r"(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+|libz)\.so.*"
)
Settings = Optional[dict[str, str]]


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    build = _build((config_settings or {}).get("build-dir"))
    package = build / "python" / "halftone"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    module = package / f"_halftone{suffix}"
    if not module.exists():
        raise SystemExit(f"{package} is not for this Python: it has no {module.name}")
    sources = [path for path in package.iterdir() if path.suffix in (".py", ".pyi", ".typed")]
    files = {f"halftone/{path.name}": path.read_bytes() for path in [module, *sorted(sources)]}
    for name, path in sorted(_libraries_of(module).items()):
        files[f"halftone/libs/{name}"] = path.read_bytes()
    with tempfile.TemporaryDirectory() as prefix:
        # What opens CUDA devices and jobs of MPI, where it is built. NVIDIA's own libraries stay out:
        # they are larger than all else by far; and MPI, which has to be that of the machine.
        for component in ("cuda", "mpi"):
            _run("cmake", "--install", build, "--component", component, "--prefix", prefix)
        for path in Path(prefix).rglob("*.so"):
            files[f"halftone/libs/{path.name}"] = path.read_bytes()
    return _write_wheel(Path(wheel_directory), files)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    raise SystemExit("the source of the module is the whole tree: expected a wheel, not an sdist")


def _build(folder: Optional[str]) -> Path:
    """Builds the module in the given folder, configured or not, or in build/wheel."""
    if not (SOURCE / "CMakeLists.txt").exists():
        raise SystemExit(f"{SOURCE} is not the tree of Halftone: expected python_stub within it")
    build = Path(folder) if folder else SOURCE / "build" / "wheel"
    if not build.is_absolute():
        build = SOURCE / build
    if not (build / "CMakeCache.txt").exists():
        # pip may run this in an environment that is gone afterwards.
        python = os.path.realpath(sys.executable)
        _run("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DHALFTONE_BUILD_TESTS=OFF", "-DHALFTONE_PYTHON=ON", f"-DPython_EXECUTABLE={python}")
    _run("cmake", "--build", build, "--target", "halftone_wheel", "--parallel", os.cpu_count() or 1)
    return build


def _run(*command: object) -> None:
    status = subprocess.run([str(word) for word in command], env=_environment()).returncode
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {status}")


def _environment() -> dict[str, str]:
    """Without the paths by which pip hides what is installed from builds."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}


def _libraries_of(module: Path) -> dict[str, Path]:
    """The shared libraries that the module loads, by the names under which it asks for them."""
    environment = dict(_environment(), LC_ALL="C")
    text = subprocess.run(
        ["ldd", module], check=True, capture_output=True, text=True, env=environment
    ).stdout
    missing = re.findall(r"^\s*(\S+) => not found", text, re.MULTILINE)
    if missing:
        raise SystemExit(f"{module} needs {', '.join(missing)}, which is not installed")
    found = re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE)
    return {name: Path(path) for name, path in found if not SYSTEM_LIBRARIES.fullmatch(name)}


def _version() -> str:
    text = (SOURCE / "CMakeLists.txt").read_text()
    found = re.search(r"^project\(halftone VERSION (\S+)", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{SOURCE}/CMakeLists.txt: no project(halftone VERSION ...)")
    return found[1]


def _write_wheel(folder: Path, files: dict[str, bytes]) -> str:
    version = _version()
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    tag = f"{python}-{python}-{platform}"
    info = f"halftone-{version}.dist-info"
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: halftone\nVersion: {version}\n"
        "Summary: Deep learning with static graphs\nRequires-Python: >=3.10\nRequires-Dist: numpy\n",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: halftone {version}\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    files = files | {f"{info}/{name}": text.encode() for name, text in texts.items()}
    record = [f"{name},{_digest(data)},{len(data)}\n" for name, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    wheel = folder / f"halftone-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            member = zipfile.ZipInfo(name)  # of 1980: equal files give equal wheels
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100755 if ".so" in name else 0o100644) << 16
            archive.writestr(member, data)
    return wheel.name


def _digest(data: bytes) -> str:
    """As RECORD has it. Source: the specification "Recording installed projects"."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
