#!/usr/bin/env bash
# clang-tidy-16; fails on any finding.
#   lint.sh            everything that this machine's configuration compiles
#   lint.sh --shipped  everything but tests/
#   lint.sh FILE...    these .cc files
# Everything is read in the batches that it is compiled in, which saves reading headers again for each
# file; misc-unused-alias-decls alone sees nothing there.
# Build directories of their own: g++'s precompiled headers mean nothing to clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${LINT_BUILD:-build/lint}
jobs=${JOBS:-$(nproc)}
batch=32
if (($# > 0)) && [[ $1 != --shipped ]]; then
  batch=1
  build+=_files
fi

# The host side of CUDA needs the toolkit's headers.
cuda=OFF
if command -v "${CUDACXX:-nvcc}" >/dev/null; then
  cuda=EMULATED
fi

cmake -S . -B "$build" -G Ninja --log-level=WARNING \
  -DCMAKE_CXX_COMPILER=clang++-16 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DHALFTONE_PCH=OFF \
  -DHALFTONE_BATCH=$batch -DHALFTONE_OPENMP=OFF -DHALFTONE_CUDA=$cuda
cmake --build "$build" --target halftone_generated >/dev/null

if ((batch == 1)); then
  # A SIMD source is compiled as the batch that includes it.
  files=()
  for file in "$@"; do
    batched=$(grep -ls "\"halftone/$file\"" "$build"/include/batches/*.cc || true)
    files+=("${batched:-$file}")
  done
else
  # Files of the source tree and batches of them; what is generated is not ours to judge.
  skip='/generated/|/halftone_proto\.dir/|_pch\.dir/|/pch\.cc$|\.cu$'
  if (($# > 0)); then
    skip+="|^$PWD/tests/|/tests/CMakeFiles/|/halftone_cuda_emulation\\.dir/"
  fi
  mapfile -t files < <(sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$build/compile_commands.json" |
    grep -Ev "$skip" | sort -u)
fi
if ((${#files[@]} == 0)); then
  echo "lint: no files in $build/compile_commands.json" >&2
  exit 1
fi
printf '%s\0' "${files[@]}" | xargs -0 -P "$jobs" -n 1 clang-tidy-16 --quiet -p "$build" \
  2> >(grep -v ' warnings\? generated\.$' >&2)
echo "lint: ${#files[@]} files"
