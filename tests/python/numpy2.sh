#!/usr/bin/env bash
# The tests of the Python module beside NumPy 2, where Debian has NumPy 1: the module of BUILD (default
# build/release), built against Debian's NumPy, has to work with both.
#   tests/python/numpy2.sh [BUILD]
# Needs pip, which takes NumPy from the Python package index into BUILD/numpy2.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build/release}")
PIP_ROOT_USER_ACTION=ignore /usr/bin/python3 -m pip install --quiet --upgrade --only-binary=:all: --target "$build/numpy2" \
  'numpy>=2,<3'
export PYTHONPATH="$build/numpy2:$build/python" PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=passive
/usr/bin/python3 -c 'import numpy; print("NumPy", numpy.__version__); assert numpy.__version__ >= "2"'
/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/python
