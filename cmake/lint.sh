#!/usr/bin/env bash
# clang-tidy-16 over the given .cc files, or over all tracked ones. Fails on any finding.
# A build directory of its own: g++ precompiled headers and unity files mean nothing to clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${LINT_BUILD:-build/lint}
jobs=${JOBS:-$(nproc)}

# The host side of CUDA needs the toolkit's headers.
cuda=OFF
without_cuda=(':!kernels/cuda' ':!tests/cuda*')
if command -v "${CUDACXX:-nvcc}" >/dev/null; then
  cuda=EMULATED
  without_cuda=()
fi

cmake -S . -B "$build" -G Ninja --log-level=WARNING \
  -DCMAKE_CXX_COMPILER=clang++-16 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DHALFTONE_PCH=OFF \
  -DHALFTONE_UNITY=OFF -DHALFTONE_OPENMP=OFF -DHALFTONE_CUDA=$cuda
cmake --build "$build" --target halftone_generated >/dev/null

if (($# > 0)); then
  files=("$@")
else
  mapfile -t files < <(git ls-files '*.cc' "${without_cuda[@]}")
fi
if ((${#files[@]} == 0)); then
  echo "lint: no files"
  exit 0
fi
printf '%s\0' "${files[@]}" | xargs -0 -P "$jobs" -n 4 clang-tidy-16 --quiet -p "$build" \
  2> >(grep -v ' warnings\? generated\.$' >&2)
echo "lint: ${#files[@]} files"
