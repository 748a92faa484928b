"""Runs the node tests of the onnx package through halftone_run: what import covers must pass.

By hand, with the package beside: python onnx_node_tests.py build/release/tools/halftone_run
prints the counts, the operators of the table whose tests fail, and with --list what is not covered.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

# Errors that say that a case is not covered, as against wrong.
NOT_COVERED = re.compile(
    r"not covered|must be known at import|is no tensor|npy element type|names no version"
)


def as_array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def run(program, case, folder):
    """None where it passes, else what halftone_run or the comparison says."""
    inputs, outputs = case.data_sets[0]
    onnx.save(case.model, folder / "model.onnx")
    command = [program, str(folder / "model.onnx"), "--out", str(folder / "out")]
    feeds = []
    names = [i.name for i in case.model.graph.input]
    for k, (name, value) in enumerate(zip(names, inputs)):
        array = as_array(value)
        if not isinstance(array, np.ndarray) and not np.isscalar(array):
            return "not covered: an input that is no tensor"
        array = np.asarray(array)
        if array.dtype.name == "bfloat16":
            array = array.view("V2")
        if array.dtype.kind not in "fiubV" or array.dtype.name.startswith(("float8", "int4")):
            return "not covered: " + array.dtype.name
        np.save(folder / f"in{k}.npy", array)
        feeds.append(f"{name}={folder}/in{k}.npy")
    if feeds:
        command += ["--feed", ",".join(feeds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return f"status {done.returncode}: {done.stderr.strip()}"
    files = [line.rsplit(" -> ", 1)[1] for line in done.stdout.splitlines() if " -> " in line]
    for path, wanted in zip(files, outputs):
        got, wanted = np.load(path), np.asarray(as_array(wanted))
        if got.dtype.kind == "V":
            got = (got.view("<u2").astype("<u4") << 16).view("<f4")
        if got.shape != wanted.shape:
            return f"wrong: shape {got.shape}, expected {wanted.shape}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # What one rounding of the dtype costs, and what the package itself allows.
            rtol = {"float16": 5e-3, "bfloat16": 2e-2}.get(wanted.dtype.name, case.rtol)
            close = np.allclose(
                got.astype(np.float64), wanted.astype(np.float64),
                rtol=rtol, atol=max(case.atol, rtol / 100), equal_nan=True)
        if not close:
            return f"wrong: {got.ravel()[:4]}, expected {wanted.ravel()[:4]}"
    if len(files) != len(outputs):
        return f"wrong: {len(files)} outputs, expected {len(outputs)}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--filter", default="")
    parser.add_argument("--list", action="store_true", help="what is not covered, and why")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, failures, uncovered = collections.Counter(), [], []
    for case in collect_testcases(None):
        if not re.search(options.filter, case.name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                problem = run(options.program, case, pathlib.Path(folder))
            except Exception as error:  # a case that the package itself cannot write
                problem = f"not covered: {type(error).__name__}: {error}"
        if problem is None:
            counts["passed"] += 1
        elif NOT_COVERED.search(problem):
            counts["not covered"] += 1
            uncovered.append((case.name, problem))
        else:
            counts["failed"] += 1
            failures.append((case.name, problem))
    for name, problem in failures + (uncovered if options.list else []):
        print(f"{name}: {problem[:300]}")
    print(dict(counts))


if __name__ == "__main__":
    main()
