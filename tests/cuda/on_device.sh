#!/usr/bin/env bash
# What only a GPU shows, in under ten minutes: runs from the folder that `make device-bundle` makes, on
# a machine with an NVIDIA driver, CUDA's libraries and, for the comparison, PyTorch. Uses no network
# and installs nothing.
#
# usage: on_device.sh [--out DIR] [--only PART,...] [--dry]
#   --out   where report.md (Markdown; JSON in lines that begin with four blanks and a brace) and log.txt
#           (all that the programs printed) go; default ./device_report. Both grow as the parts run.
#   --only  parts, of those that --dry lists
#   --dry   prints the plan
# PYTHON=... names the Python that has PyTorch; default python3.
# Exit status: 0 all tests passed and the sanitizer found nothing; 1 not so; 2 wrong usage; 3 nothing
# could run (no device, no CUDA libraries).
set -uo pipefail
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
out=$PWD/device_report
only=""
dry=false

# part | seconds at most | what
plan=(
  "device|40|the device, and what cuDNN tells of it"
  "test_cuda|110|kernels against the reference kernels, backend"
  "test_cuda_step|60|training steps against the CPU"
  "benchmarks|180|training steps of Halftone and PyTorch, in turn"
  "memcheck|60|compute-sanitizer: memory errors of our kernels"
  "racecheck|50|compute-sanitizer: races in shared memory of our kernels"
)
max_seconds=540
# Tests of kernels that share memory between threads come to the sanitizer's slower tool.
shared_memory_tests='*/softmax:*/log_softmax:*/layer_norm*:*/batch_norm*:*/sum:*/mean:*/cross_entropy*:*/matmul:*/grad_stats:GradStats*:IndexCheck*'
workloads="mlp fashion_cnn"

usage() {
  sed -nE '/^# usage/,/^set /s/^# ?//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

while (($# > 0)); do
  case $1 in
    --out) (($# > 1)) || usage; out=$2; shift ;;
    --only) (($# > 1)) || usage; only=$2; shift ;;
    --dry) dry=true ;;
    *) usage ;;
  esac
  shift
done

wanted() { [[ -z $only || ,$only, == *,$1,* ]]; }
seconds_of() { printf '%s\n' "${plan[@]}" | sed -n "s/^$1|\([0-9]*\)|.*/\1/p"; }

for name in ${only//,/ }; do
  [[ -n $(seconds_of "$name") ]] || { echo "on_device: --only has \"$name\"; see --dry" >&2; exit 2; }
done
total=0
for entry in "${plan[@]}"; do
  IFS='|' read -r name seconds what <<<"$entry"
  wanted "$name" || continue
  total=$((total + seconds))
  if $dry; then printf '%-15s %4d s  %s\n' "$name" "$seconds" "$what"; fi
done
if ((total > max_seconds)); then
  echo "on_device: the parts take $total s; expected at most $max_seconds" >&2
  exit 2
fi
if $dry; then
  echo "at most $total s in all"
  exit 0
fi
if [[ ! -x $bundle/bin/test_cuda ]]; then
  echo "on_device: no bin/test_cuda beside this script; run it from the folder of \`make device-bundle\`" >&2
  exit 2
fi

for packed in "$bundle"/lib/*.gz; do
  [[ ! -f $packed || -f ${packed%.gz} ]] || gzip -dk "$packed" || exit 2
done
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
report=$out/report.md
log=$out/log.txt
: >"$report" || exit 2
: >"$log"
failed=()
start=$SECONDS

say() { printf '%s\n' "$@" | tee -a "$report"; }
fail() { [[ " ${failed[*]} " == *" $1 "* ]] || failed+=("$1"); }
json() { printf '    %s\n' "$1" >>"$report"; }
quoted() { printf '%s' "$1" | tr '\n\t' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$/"/'; }

# --- Libraries: one folder for each, the first that has it; "" where the loader finds it itself.

site_folders() {
  timeout 30 "$python" -c 'import glob, sys
for p in sys.path: print(*sorted(glob.glob(p + "/nvidia/*/lib")), sep="\n")' 2>/dev/null
}

find_libraries() {
  local folders=() folder name found
  IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
  folders+=(/usr/local/cuda/lib64 /usr/local/cuda/lib)
  while read -r folder; do folders+=("$folder"); done <<<"$(site_folders)"
  folders+=(/usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib)
  library_path=""
  for name in libcudart.so.13 libcublasLt.so.13 libcudnn.so.9 libnvrtc.so.13 libcuda.so.1; do
    found=""
    for folder in "${folders[@]}"; do
      [[ -n $folder && -e $folder/$name ]] && { found=$folder; break; }
    done
    # The driver's comes with it, and must not be taken from elsewhere if the loader knows it.
    local known
    known=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null)
    known=$(sed -nE "s/^\s*${name//./\\.} .*=> //p" <<<"$known" | head -1)
    [[ $name == libcuda.so.1 && -n $known ]] && found=""
    if [[ -n $found ]]; then
      [[ :$library_path: == *:$found:* ]] || library_path+=${library_path:+:}$found
      say "* $name: $(readlink -f "$found/$name")"
    elif [[ -n $known ]]; then
      say "* $name: $(readlink -f "$known")"
    else
      say "* $name: not found"
    fi
  done
}

# --- Parts.

# run SECONDS COMMAND...: into the log and $output; the status is the command's, 124 if it took longer.
output=$out/.output
run() {
  local seconds=$1 rc=0
  shift
  json "{\"running\": $(quoted "${*: -2}"), \"at_most_s\": $seconds}"
  printf '\n=== %s\n' "$*" >>"$log"
  timeout -k 5 "$seconds" "$@" >"$output" 2>&1 || rc=$?
  cat "$output" >>"$log"
  printf '=== status %d\n' "$rc" >>"$log"
  return $rc
}

# counts: of a GoogleTest program's output, also one cut short.
counts() {
  ok=$(grep -c '^\[       OK \]' "$output")
  bad=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).* (.*ms)$/\1/p' "$output" | sort -u | wc -l)
  skipped=$(grep -c '^\[  SKIPPED \].* (.*ms)$' "$output")
  all=$(sed -n 's/^\[==========\] Running \([0-9]*\) tests\? from.*/\1/p' "$output" | head -1)
  all=${all:-0}
}

tests() {
  local program=$1 seconds rc=0 began=$SECONDS ok bad skipped all
  seconds=$(seconds_of "$1")
  run "$seconds" "${ours[@]}" "$bundle/bin/$program" --gtest_color=no || rc=$?
  counts
  say "$program: $ok of $all passed, $bad failed, $skipped skipped; status $rc$( ((rc == 124)) && echo " (stopped after $seconds s)"), $((SECONDS - began)) s"
  json "{\"part\": \"$program\", \"tests\": $all, \"passed\": $ok, \"failed\": $bad, \"skipped\": $skipped, \"status\": $rc, \"seconds\": $((SECONDS - began))}"
  if ((rc != 0)); then
    fail "$program"
    # Neither passed nor failed: it hung, or took the program down.
    if ((rc != 1)); then
      say "" "last: $(grep '^\[ RUN' "$output" | tail -1)" '```' "$(tail -5 "$output" | cut -c1-300)" '```'
    fi
    ((bad == 0)) || say "" '```' "$(grep -B30 '^\[  FAILED  \].* (.*ms)$' "$output" | cut -c1-300 | head -150)" '```'
  fi
  say ""
}

# The first word of cuDNN's and the runtime's libraries on the device; everything else needs it.
device() {
  local rc=0 began=$SECONDS reason
  rm -f "$out/.properties"
  export HALFTONE_DEVICE_PROPERTIES=$out/.properties
  run "$(seconds_of device)" "${ours[@]}" "$bundle/bin/test_cuda" --gtest_color=no '--gtest_filter=CudnnDeviceProperties.*' || rc=$?
  unset HALFTONE_DEVICE_PROPERTIES
  card=$(sed -n 's/^CUDA device: //p' "$output" | head -1)
  if [[ -z $card ]]; then
    reason=$(grep -m1 -oE 'no CUDA device: .*|.*error while loading shared libraries.*' "$output")
    if ((rc == 124)); then reason="the device did not answer in $(seconds_of device) s"; fi
    say "" "Nothing can run: ${reason:-status $rc: $(tail -1 "$output")}"
    json "{\"part\": \"device\", \"device\": null, \"status\": $rc}"
    rm -f "$output"
    exit 3
  fi
  say "" "Device: $card"
  if command -v nvidia-smi >/dev/null; then
    say "$(timeout 20 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv 2>&1 | head -3 | paste -sd';')"
  fi
  if ((rc != 0)); then fail device; fi
  json "{\"part\": \"device\", \"device\": $(quoted "$card"), \"status\": $rc, \"seconds\": $((SECONDS - began))}"
  if [[ -s $out/.properties ]]; then
    json "{\"part\": \"cudnn_device_properties\", \"value\": $(tr -d '\n' <"$out/.properties")}"
  else
    say "cuDNN's device properties: none (log.txt)"
  fi
  rm -f "$out/.properties"
  say ""
}

# sanitize TOOL FILTER
sanitize() {
  local tool=$1 filter=$2 seconds rc=0 began=$SECONDS ok bad skipped all errors verdict
  seconds=$(seconds_of "$tool")
  local sanitizer=""
  for sanitizer in "$(command -v compute-sanitizer)" /usr/local/cuda/{bin,compute-sanitizer}/compute-sanitizer ""; do
    [[ -x $sanitizer ]] && break
  done
  if [[ -z $sanitizer ]]; then
    say "$tool: skipped, compute-sanitizer is not installed" ""
    json "{\"part\": \"$tool\", \"skipped\": \"not installed\"}"
    return
  fi
  # The libraries' kernels are not ours to check, and slow to.
  run "$seconds" "${ours[@]}" "$sanitizer" --tool "$tool" --kernel-name kns=halftone \
    --report-api-errors no --error-exitcode 86 \
    "$bundle/bin/test_cuda" --gtest_color=no "--gtest_filter=$filter" || rc=$?
  counts
  errors=$(sed -nE 's/^========= (ERROR SUMMARY: .*|RACECHECK SUMMARY: .*)/\1/p' "$output" | tail -1)
  if grep -q 'Device not supported' "$output"; then
    verdict="skipped, compute-sanitizer does not support this device or system"
  elif ((rc == 86)) || grep -qE '^========= .*(Invalid|Error: Race|hazard|Misaligned|out of bounds)' "$output"; then
    verdict="found errors"
    fail "$tool"
    say '```' "$(grep '^=========' "$output" | head -60)" '```'
  elif ((rc == 124)); then
    verdict="found nothing in the tests that ran in $seconds s"
  elif ((rc != 0)); then
    verdict="status $rc: $(tail -1 "$output")"
    fail "$tool"
  else
    verdict="found nothing"
  fi
  say "$tool: $verdict; $ok of $all tests; ${errors:-no summary}; $((SECONDS - began)) s" ""
  json "{\"part\": \"$tool\", \"verdict\": $(quoted "$verdict"), \"tests\": $all, \"passed\": $ok, \"failed\": $bad, \"status\": $rc, \"seconds\": $((SECONDS - began))}"
}

# measure COMMAND...: its JSON lines go to the report at once. Nothing once the part's time is over.
measure() {
  local left=$((benchmarks_end - SECONDS)) rc=0
  ((left > 5)) || return 0
  run "$left" "$@" || rc=$?
  grep '^{' "$output" | sed 's/^/    /' | tee -a "$lines" >>"$report"
  ((rc == 0)) && return
  say "status $rc: ${*: -4}: $(grep -v '^{' "$output" | tail -1 | cut -c1-200)"
  # Time that runs out and PyTorch's troubles are no failures of ours.
  if ((rc != 124)) && [[ $1 == env ]]; then fail benchmarks; fi
}

# The best median of each column: Halftone's and PyTorch's, by workload and precision.
table() {
  awk '
    function get(key,  m) { if (match($0, "\"" key "\": *\"?[^,\"}]*")) { m = substr($0, RSTART, RLENGTH); sub(/^[^:]*: *"?/, "", m); return m } return "" }
    { name = get("name"); amp = get("amp"); col = get("framework") ~ /^torch/ ? "torch " get("mode") : "halftone"
      row = name "|" amp; if (!(row in seen)) { seen[row] = 1; rows[++n] = row }
      t = get("step_s") + 0; k = row SUBSEP col; if (!(k in best) || t < best[k]) best[k] = t; count[k]++ }
    function cell(col,  k) { k = row SUBSEP col; return k in best ? sprintf("%.4f", best[k] * 1e3) : "-" }
    function ratio(col) { return (row SUBSEP col in best) && (row SUBSEP "halftone" in best) ? sprintf("%.2f", best[row SUBSEP col] / best[row SUBSEP "halftone"]) : "-" }
    END { split("torch eager,torch compile,torch reduce-overhead", c, ",")
      print "| workload | AMP | Halftone ms | PyTorch eager ms | compile ms | reduce-overhead ms | eager / Halftone | compile / Halftone | reduce-overhead / Halftone |"
      print "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
      for (i = 1; i <= n; ++i) { row = rows[i]; split(row, r, "|")
        print "| " r[1] " | " r[2] " | " cell("halftone") " | " cell(c[1]) " | " cell(c[2]) " | " cell(c[3]) " | " ratio(c[1]) " | " ratio(c[2]) " | " ratio(c[3]) " |" } }
  ' "$lines"
}

benchmarks() {
  local began=$SECONDS workload amp mode torch
  benchmarks_end=$((SECONDS + $(seconds_of benchmarks)))
  lines=$out/.lines
  : >"$lines"
  torch=$(timeout 60 "$python" -c 'import torch; print(torch.__version__ if torch.cuda.is_available() else "")' 2>/dev/null)
  [[ -n $torch ]] || say "PyTorch: left out, $python has none that sees the device" ""
  for _ in 1 2 3; do
    for workload in $workloads; do
      for amp in off f16 bf16; do
        measure "${ours[@]}" "$bundle/bin/train_step" --device=cuda --workload="$workload" --amp="$amp" \
          --steps=100
      done
    done
    [[ -n $torch ]] || continue
    for mode in eager compile reduce-overhead; do
      measure "$python" "$bundle/peers/torch_workloads.py" --device cuda --only "${workloads// /,}" \
        --amp off,f16,bf16 --mode "$mode" --steps 100
    done
  done
  say "" "Training steps on $card; PyTorch ${torch:-none}. Both: milliseconds a step by the host's clock, median over blocks" \
    "of steps between two waits for the device, best of up to three rounds in turn; inputs copied in each step, no TF32." ""
  say "$(table)" ""
  grep -q '"halftone"' "$lines" || fail benchmarks
  json "{\"part\": \"benchmarks\", \"lines\": $(wc -l <"$lines"), \"seconds\": $((SECONDS - began))}"
  rm -f "$lines"
}

# --- The run.

say "# On a GPU" "" "$(sed 's/^/* /' "$bundle/bundle.txt")" "* $(date -u +%FT%TZ), $(uname -sr), $(nproc) CPU cores"
find_libraries
# Before a program of the bundle; these libraries are not for Python.
ours=(env "LD_LIBRARY_PATH=$bundle/lib${library_path:+:$library_path}" "HALFTONE_FASHION_MNIST=$bundle/data")
missing=$("${ours[@]}" ldd "$bundle/bin/test_cuda" "$bundle/lib/libhalftone_cuda.so" 2>&1 | sed -nE 's/^\s*(.*not found.*)$/\1/p' | sort -u)
if [[ -n $missing ]]; then
  say "" "Nothing can run: the loader misses" '```' "$missing" '```'
  exit 3
fi
device
wanted test_cuda && tests test_cuda
wanted test_cuda_step && tests test_cuda_step
wanted benchmarks && benchmarks
wanted memcheck && sanitize memcheck '*'
wanted racecheck && sanitize racecheck "$shared_memory_tests"
rm -f "$output"
say "${failed[*]:+Not passed: }${failed[*]:-All passed}; $((SECONDS - start)) s in all."
json "{\"part\": \"all\", \"failed\": $(quoted "${failed[*]:-}"), \"seconds\": $((SECONDS - start))}"
((${#failed[@]} == 0))
