# Part of on_device.sh: the tests of a GoogleTest program in several processes at once, each started anew behind a
# test that takes it down, so that one fatal error costs one test and not all that would have come later.
# Uses $ours, $bundle, $work.

shards=4
# What a device says once it has failed: every later test of the process fails as well.
sticky='cudaError(IllegalAddress|LaunchFailure|HardwareStackError|IllegalInstruction|MisalignedAddress|InvalidAddressSpace|InvalidPc|Assert|EccUncorrectable|LaunchTimeout)|CUDA_ERROR_(ILLEGAL_ADDRESS|LAUNCH_FAILED)'

# names PROGRAM FILTER: its tests, one a line.
names() {
  "${ours[@]}" "$bundle/bin/$1" --gtest_list_tests "--gtest_filter=$2" 2>>"$log" |
    awk '/^[^ ].*\.( *#.*)?$/ { sub(/ *#.*/, ""); suite = $0; next } /^  / && suite != "" { print suite $1 }'
}

# without FILE FILE: the lines of the first that the second lacks.
without() { awk 'NR == FNR { seen[$0] = 1; next } !($0 in seen)' "$2" "$1"; }

# shard PROGRAM PREFIX END: runs the tests that PREFIX.rest lists until $SECONDS is END. PREFIX.results has a line for
# each: passed, failed, skipped, crashed, stopped (time was over) or missing (never run); PREFIX.log all output.
shard() {
  local program=$1 at=$2 end=$3 left rc before running
  : >"$at.results" && : >"$at.log"
  while [[ -s $at.rest ]]; do
    left=$((end - SECONDS)) rc=0
    ((left > 0)) || break
    timeout -k 5 "$left" "${ours[@]}" "$bundle/bin/$program" --gtest_color=no \
      "--gtest_filter=$(paste -sd: "$at.rest")" >"$at.round" 2>&1 || rc=$?
    cat "$at.round" >>"$at.log"
    sed -nE 's/^\[       OK \] ([^ ,]+).*\([0-9]+ ms\)$/passed \1/p
      s/^\[  SKIPPED \] ([^ ,]+).*\([0-9]+ ms\)$/skipped \1/p
      s/^\[  FAILED  \] ([^ ,]+).*\([0-9]+ ms\)$/failed \1/p' "$at.round" >"$at.ended"
    # Behind a sticky error only the first failure is a test's own: the others get another process.
    if grep -qE "$sticky" "$at.round"; then
      awk '$1 != "failed" || !n++' "$at.ended" >"$at.own" && mv "$at.own" "$at.ended"
    fi
    running=""
    if ((rc != 0 && rc != 1)); then
      running=$(sed -nE 's/^\[ RUN      \] (\S+).*/\1/p' "$at.round" | tail -1)
      grep -qE "^\[ .*\] ${running//./\\.}[ ,].*ms\)$" "$at.round" && running="at_exit"
      if ((rc == 124 || rc == 137)); then
        echo "stopped ${running:-before_the_first_test}" >>"$at.ended"
      else
        echo "crashed ${running:-before_the_first_test}" >>"$at.ended"
        echo "[  FAILED  ] ${running:-at start}: the process ended with status $rc (0 ms)" >>"$at.log"
      fi
    fi
    cat "$at.ended" >>"$at.results"
    before=$(wc -l <"$at.rest")
    sed 's/^[a-z]* //' "$at.ended" >"$at.own"
    without "$at.rest" "$at.own" >"$at.left" && mv "$at.left" "$at.rest"
    # No progress: it would not start, or prints what this does not read.
    (($(wc -l <"$at.rest") < before)) && ((rc != 124 && rc != 137)) || break
  done
  sed 's/^/missing /' "$at.rest" >>"$at.results"
}

# in_shards PROGRAM FILTER SECONDS: results of all shards in $results, output in $output.
in_shards() {
  local program=$1 end=$((SECONDS + $3)) i=0 at=$work/$1 pids=()
  names "$program" "$2" >"$at.all"
  rm -f "$at".[0-9].*
  for ((i = 0; i < shards; ++i)); do
    awk -v n=$shards -v i=$i 'NR % n == i' "$at.all" >"$at.$i.rest"
    shard "$program" "$at.$i" "$end" &
    pids+=($!)
  done
  wait "${pids[@]}"
  results=$work/results
  cat "$at".[0-9].results >"$results"
  cat "$at".[0-9].log >"$output"
  cat "$output" >>"$log"
  all=$(wc -l <"$at.all")
}
count() { grep -c "^$1 " "$results"; }
