#!/usr/bin/env bash
# Fuzzes every reader for SECONDS each, from the seeds in corpus/; what it learns stays in
# build/fuzz/corpus/, what it finds in build/fuzz/finds/. A find belongs into corpus/<name>/, where
# every test run repeats it. Usage: tests/fuzz/run.sh SECONDS [name...]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$1
shift
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "${JOBS:-$(nproc)}"

names=("$@")
if ((${#names[@]} == 0)); then
  for folder in tests/fuzz/corpus/*/; do names+=("$(basename "$folder")"); done
fi
failed=()
for name in "${names[@]}"; do
  mkdir -p "build/fuzz/corpus/$name" build/fuzz/finds
  # One allocation may take what a splat constant may (graph/ir/limits.h) and no more.
  build/fuzz/tests/fuzz/fuzz_"$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 \
    -malloc_limit_mb=320 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/finds/$name-" "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" \
    >"build/fuzz/$name.log" 2>&1 || failed+=("$name")
  echo "fuzz $name: $(grep -E '^(stat::number_of_executed_units|SUMMARY)' "build/fuzz/$name.log" | tr '\n' ' ')"
done
((${#failed[@]} == 0)) || { echo "fuzz: failed: ${failed[*]}; see build/fuzz/finds" >&2; exit 1; }
