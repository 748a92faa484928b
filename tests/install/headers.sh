#!/usr/bin/env bash
# Compiles every installed header alone: tests/install/headers.sh PREFIX. A second per header, so it is a
# step of .ci/run, not a test.
set -euo pipefail
cd "$1/include"
mapfile -t headers < <(find halftone -name '*.h' | sort)
((${#headers[@]} > 0)) || { echo "headers: none below $1/include" >&2; exit 1; }
printf '%s\0' "${headers[@]}" | xargs -0 -P "${JOBS:-$(nproc)}" -I{} \
  "${CXX:-g++}" -std=c++20 -fopenmp -Wall -Wextra -Werror -fsyntax-only -I. -include {} -x c++ /dev/null
echo "headers: ${#headers[@]} compile alone"
