#!/usr/bin/env bash
# Compiles every installed header alone: tests/install/headers.sh PREFIX. Too slow for a
# test: a step of .ci/run.
set -euo pipefail
cd "$1/include"
headers=$(find halftone -name '*.h' | sort)
[[ -n $headers ]] || { echo "headers: none below $1/include" >&2; exit 1; }
tr '\n' '\0' <<<"$headers" | xargs -0 -P "${JOBS:-$(nproc)}" -I{} \
  "${CXX:-g++}" -std=c++20 -fopenmp -Wall -Wextra -Werror -fsyntax-only -I. -include {} -x c++ /dev/null
echo "headers: $(wc -l <<<"$headers") compile alone"
