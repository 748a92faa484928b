#!/usr/bin/env bash
# What only a GPU shows, in under ten minutes: runs from the folder that `make device-bundle` makes, on
# a machine with an NVIDIA driver, CUDA's libraries and, for the comparison, PyTorch. Uses no network
# and installs nothing.
#
# usage: on_device.sh [--out DIR] [--only PART,...] [--dry]
#   --out   where report.md (Markdown; JSON in lines that begin with four blanks and a brace), log.txt (all that the
#           programs printed), card.csv (clocks, power) and cache/ (tuned plans) go; default ./device_report.
#   --only  parts, of those that --dry lists
#   --dry   prints the plan
# PYTHON=... names the Python that has PyTorch; default python3.
# Exit status: 0 all tests that the time sufficed for passed and the sanitizer found nothing; 1 not so; 2 wrong usage; 3 nothing
# could run (no device, no CUDA libraries).
set -uo pipefail
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
out=$PWD/device_report
only=""
dry=false

# part | seconds at most | what
plan=(
  "device|120|the device, and what cuDNN tells of it; libraries are cold"
  "test_cuda|120|kernels against the reference kernels, backend, in 4 processes"
  "test_cuda_step|60|training steps against the CPU, in 4 processes"
  "attention|40|cuDNN's attention beside ours at GPT-2's size"
  "kernels|60|single kernels: bytes and operations a second"
  "benchmarks|180|training steps of Halftone and PyTorch, in turn"
  "memcheck|60|compute-sanitizer: memory errors of our kernels"
  "racecheck|50|compute-sanitizer: races in shared memory of our kernels"
  "synccheck|40|compute-sanitizer: barriers that not all threads reach"
)
# Few parts need their time: what would begin later is left out.
max_seconds=${HALFTONE_ON_DEVICE_SECONDS:-540}
# Tests of kernels that share memory between threads come to the sanitizer's slower tools.
shared_memory_tests='*/softmax*:*/log_softmax*:*/layer_norm*:*/batch_norm*:*/sum*:*/mean:*/max:*/argmax:*/cross_entropy*:*/matmul:*/linear:*/scatter*:*/gather_grad:*/embedding_grad*:*/take_along_dim_grad:*/transpose:*/relayout:*/conv?d_grad_bias:*/mse*:*/l1*:*/grad_stats*:*/grad_squares:*/scaled_dot_product*:*/cumsum:*/prod:*/sort:*/f8_*:*/lstm*:*/gru*:*_update*:GradStats*:IndexCheck*:*Optimizer*:*LowUpdate*:AllReduceKernels*:BatchNormTest*:CudaMatmul*:CudaMovement*:CudaScatterTest*:LayerNormTest*:NormTest*:ReductionTest*:SoftmaxTest*'
# Parts of their own, and plans for a device that is not this one.
apart='-CudnnAttentionOnDevice.*:CudnnDeviceProperties.*:CudnnAccepts*'

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
# Of a part: its own limit, or what is left of the whole.
left_for() {
  local own left=$((start + max_seconds - SECONDS))
  own=$(seconds_of "$1")
  echo $((own < left ? own : left > 0 ? left : 0))
}

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
((total <= max_seconds)) || total=$max_seconds
if $dry; then
  echo "at most $total s in all"
  exit 0
fi
# Under another name until all of it is there; those of an older bundle in this folder are replaced.
for packed in "$bundle"/bin/*.gz "$bundle"/lib/*.gz; do
  plain=${packed%.gz}
  [[ -f $packed && ! $plain -nt $packed ]] || continue
  cp -p "$packed" "$plain.part.gz" && gzip -df "$plain.part.gz" && touch "$plain.part" && mv -f "$plain.part" "$plain" || exit 2
done
if [[ ! -x $bundle/bin/test_cuda ]]; then
  echo "on_device: no bin/test_cuda beside this script; run it from the folder of \`make device-bundle\`" >&2
  exit 2
fi

mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
report=$out/report.md
log=$out/log.txt
: >"$report" || exit 2
: >"$log"
failed=() skipped=()
start=$SECONDS
work=$out/.work
mkdir -p "$work" || exit 2
watcher=""
trap 'stop_warming; rm -rf "$work" "$out/.output"; [[ -z $watcher ]] || kill "$watcher" 2>/dev/null' EXIT
source "$bundle/on_device_shards.sh"
source "$bundle/on_device_benchmarks.sh"

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

# Clocks, power, temperature and what holds the clocks back, every five seconds in card.csv.
watch_card() {
  local query=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu reasons
  command -v nvidia-smi >/dev/null || return 0
  for reasons in clocks_event_reasons.active clocks_throttle_reasons.active; do
    timeout 20 nvidia-smi "--query-gpu=$query,$reasons" --format=csv,noheader,nounits >/dev/null 2>&1 && break
  done
  nvidia-smi "--query-gpu=$query,$reasons" --format=csv,noheader,nounits -l 5 >"$out/card.csv" 2>>"$log" &
  watcher=$!
}

# 0x1 is an idle card.
what_the_card_did() {
  [[ -s $out/card.csv ]] || return 0
  say "The card meanwhile (card.csv): $(awk -F', *' '
    function of(i) { return low[i] + 0 " to " high[i] + 0 }
    { for (i = 2; i <= 5; ++i) { if (NR == 1 || $i < low[i]) low[i] = $i + 0; if ($i > high[i]) high[i] = $i + 0 } why[$7] }
    END { printf "SM clock %s MHz, memory clock %s MHz, %s W, %s C, clocks held back by", of(2), of(3), of(4), of(5)
      for (w in why) printf " %s", w }' "$out/card.csv")"
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
  ((rc != 137)) || rc=124  # it did not heed the first signal
  cat "$output" >>"$log"
  printf '=== status %d\n' "$rc" >>"$log"
  return $rc
}

# tests PROGRAM FILTER
tests() {
  local program=$1 began=$SECONDS all results bad crashed
  in_shards "$program" "$2" "$(left_for "$program")"
  bad=$(count failed) crashed=$(($(count crashed) + $(count stopped)))
  say "$program: $(count passed) of $all passed, $bad failed, $(count skipped) skipped, $crashed took their process down or ran out of time, $(count missing) not run; $((SECONDS - began)) s"
  json "{\"part\": \"$program\", \"tests\": $all, \"passed\": $(count passed), \"failed\": $bad, \"skipped\": $(count skipped), \"crashed\": $crashed, \"missing\": $(count missing), \"seconds\": $((SECONDS - began))}"
  if ((bad + crashed + $(count missing) > 0 || all == 0)); then
    fail "$program"
    say "" "$(grep -E '^(failed|crashed|stopped) ' "$results" | sed 's/^/* /')"
    say "" '```' "$(grep -B30 '^\[  FAILED  \].* (.*ms)$' "$output" | cut -c1-300 | head -150)" '```'
  fi
  # Where a card only rounds otherwise than the reference does.
  if grep -q '^distance: ' "$output"; then
    say "" "Off by more than the emulated device, by rounding:" "$(sed -n 's/^distance: /* /p' "$output" | cut -c1-300 | sort -u | head -60)"
  fi
  say ""
}

# Milliseconds of both, and whether they agree.
attention() {
  local rc=0
  run "$(left_for attention)" "${ours[@]}" "$bundle/bin/test_cuda" --gtest_color=no '--gtest_filter=CudnnAttentionOnDevice.*' || rc=$?
  say "attention: status $rc" "$(grep -E ' ms$' "$output")" ""
  ((rc == 0)) || { fail attention; say '```' "$(tail -20 "$output" | cut -c1-300)" '```'; }
}

# The first word of cuDNN's and the runtime's libraries on the device; everything else needs it.
device() {
  local rc=0 began=$SECONDS reason
  rm -f "$out/.properties"
  export HALFTONE_DEVICE_PROPERTIES=$out/.properties
  run "$(left_for device)" "${ours[@]}" "$bundle/bin/test_cuda" --gtest_color=no '--gtest_filter=CudnnDeviceProperties.*' || rc=$?
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
    say "$(timeout 20 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,mig.mode.current --format=csv 2>&1 | head -3 | paste -sd';')"
  fi
  if ((rc != 0)); then fail device; fi
  json "{\"part\": \"device\", \"device\": $(quoted "$card"), \"status\": $rc, \"seconds\": $((SECONDS - began))}"
  say "$(grep -m1 '^cuDNN [0-9]' "$output" || echo "cuDNN: does not say its CUDA version")"
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
  local tool=$1 filter=$2 seconds rc=0 began=$SECONDS ok bad all errors verdict i pids=() status
  seconds=$(left_for "$tool")
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
  json "{\"running\": \"$tool\", \"at_most_s\": $seconds}"
  for ((i = 0; i < shards; ++i)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i timeout -k 5 "$seconds" \
      "${ours[@]}" "$sanitizer" --tool "$tool" --kernel-name kns=halftone --report-api-errors no --error-exitcode 86 \
      "$bundle/bin/test_cuda" --gtest_color=no "--gtest_filter=$filter" >"$work/$tool.$i" 2>&1 &
    pids+=($!)
  done
  # The worst of four: errors found, then any other status, then time.
  for i in "${pids[@]}"; do
    status=0
    wait "$i" || status=$?
    if ((status == 86 || rc == 0 || (rc == 124 && status != 0))); then rc=$status; fi
    ((rc != 86)) || break
  done
  wait "${pids[@]}"  # not for the watcher of the card, which does not end
  cat "$work/$tool".[0-9] >"$output"
  cat "$output" >>"$log"
  ok=$(grep -c '^\[       OK \]' "$output")
  bad=$(grep -c '^\[  FAILED  \].* (.*ms)$' "$output")
  all=$(sed -nE 's/^\[==========\] Running ([0-9]+) tests? from.*/\1/p' "$output" | paste -sd+ | sed 's/^$/0/')
  all=$((all))
  errors=$(sed -nE 's/^========= (ERROR SUMMARY: .*|RACECHECK SUMMARY: .*)/\1/p' "$output" | sort | uniq -c | xargs)
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
watch_card
device
# part NAME COMMAND...: if it is wanted and there is time.
part() {
  local name=$1
  shift
  wanted "$name" || return 0
  if (($(left_for "$name") < 5)); then
    say "$name: left out, $max_seconds s are over" ""
    skipped+=("$name")
    return
  fi
  "$@"
}
if wanted test_cuda && wanted benchmarks; then warm_pytorch; fi
part test_cuda tests test_cuda "$apart"
part test_cuda_step tests test_cuda_step '*'
stop_warming
part attention attention
part kernels kernels
part benchmarks benchmarks
part memcheck sanitize memcheck '-Cudnn*'
part racecheck sanitize racecheck "$shared_memory_tests"
part synccheck sanitize synccheck "$shared_memory_tests"
what_the_card_did
say "${failed[*]:+Not passed: }${failed[*]:-All passed}${skipped[*]:+; left out: }${skipped[*]:-}; $((SECONDS - start)) s in all."
json "{\"part\": \"all\", \"failed\": $(quoted "${failed[*]:-}"), \"seconds\": $((SECONDS - start))}"
((${#failed[@]} == 0))
