#!/usr/bin/env bash
# on_device.sh with programs that only pretend: tests that fail, abort, break the device or hang, kernels and steps that
# are timed or not, PyTorch, a sanitizer, a card's clocks, and a machine without a device.
# Usage: on_device_script_test.sh FOLDER (to work in)
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1
rm -rf "$work"
mkdir -p "$work"/bundle/{bin,lib,peers} "$work/tools"
cp "$here"/on_device.sh "$here"/on_device_shards.sh "$here"/on_device_benchmarks.sh "$work/bundle"
echo "commit: pretended" >"$work/bundle/bundle.txt"
touch "$work/bundle/lib/libhalftone_cuda.so"

# A GoogleTest program of 24 tests. What some do: $PRETEND names them, as "Suite.Name=crash Suite.Name=sticky".
cat >"$work/bundle/bin/test_cuda" <<'FAKE'
#!/usr/bin/env bash
filter=*
list=false
for argument; do
  case $argument in
    --gtest_filter=*) filter=${argument#*=} ;;
    --gtest_list_tests) list=true ;;
  esac
done
matches() {  # NAME PATTERNS
  local pattern patterns
  IFS=: read -ra patterns <<<"$2"
  for pattern in "${patterns[@]}"; do [[ $1 == $pattern ]] && return; done
  return 1
}
wanted() {
  local positive=${filter%%-*} negative=""
  [[ $filter == *-* ]] && negative=${filter#*-}
  matches "$1" "${positive:-*}" && ! matches "$1" "$negative"
}
names=(CudnnDeviceProperties.Fits CudnnAttentionOnDevice.Agrees CudnnAccepts.Graphs)
for i in {1..21}; do names+=("All/Suite.Test/$i"); done
if $list; then
  echo "Running main() from a file"
  for name in "${names[@]}"; do wanted "$name" && printf '%s.\n  %s  # GetParam() = 1\n' "${name%.*}" "${name##*.}"; done
  exit 0
fi
[[ ${PRETEND:-} == *no_device* ]] && { echo "no CUDA device: device cuda:0: no NVIDIA driver is installed"; exit 1; }
echo "CUDA device: Pretended"
broken=false status=0
for name in "${names[@]}"; do
  wanted "$name" || continue
  echo "[ RUN      ] $name"
  how=""
  for entry in ${PRETEND:-}; do [[ $entry == "$name="* ]] && how=${entry##*=}; done
  case $how in
    crash) echo "free(): invalid pointer"; kill -ABRT $$ ;;
    hang) sleep 1000 & echo $! >>"$HANGING"; wait ;;
    sticky) broken=true ;;
    skip) echo "[  SKIPPED ] $name (0 ms)"; continue ;;
    distance) echo "distance: $name: 3 units" ;;
  esac
  [[ $name == CudnnDevice* ]] && echo "cuDNN 91900 for CUDA 13000, runtime 13000"
  [[ $name == CudnnAttention* ]] && echo "cuda:cudnn:pretended: 1.5 ms"
  $broken && echo "cudaErrorIllegalAddress (an illegal memory access was encountered)"
  if $broken || [[ $how == fail ]]; then
    echo "[  FAILED  ] $name, where GetParam() = 1 (3 ms)"
    status=1
  else
    echo "[       OK ] $name (3 ms)"
  fi
done
exit $status
FAKE
cat >"$work/bundle/bin/test_cuda_step" <<'FAKE'
#!/usr/bin/env bash
PRETEND="$PRETEND_STEP" exec "$(dirname "$0")/test_cuda" "$@"
FAKE
cat >"$work/bundle/bin/train_step" <<'FAKE'
#!/usr/bin/env bash
echo "a choice" >>"$HALFTONE_CACHE_DIR/autotune.txt"
name=$(sed -nE 's/.*--workload=(\S+).*/\1/p' <<<"$*") amp=$(sed -nE 's/.*--amp=(\S+).*/\1/p' <<<"$*")
echo "{\"framework\": \"halftone\", \"name\": \"$name\", \"amp\": \"$amp\", \"step_s\": 0.0001}"
FAKE
cat >"$work/bundle/bin/device_kernels" <<'FAKE'
#!/usr/bin/env bash
echo '{"name": "softmax/1024", "dtype": "f16", "gb_s": 3000.5}'
[[ ${PRETEND_KERNELS:-} == hang ]] && exec sleep 1000
echo "| softmax/1024 | f16 | $HALFTONE_CACHE_DIR | $*"
[[ ${PRETEND_KERNELS:-} != fail ]] || { echo "device_kernels: add f16: no kernel"; exit 1; }
FAKE
cat >"$work/tools/python_with_torch" <<'FAKE'
#!/usr/bin/env bash
[[ $1 == -c && $2 == *torch* ]] && echo 2.9.0
[[ $1 == *torch_workloads.py ]] || exit 0
echo "$*" >>"$PYTORCH_CALLS"
only=$(sed -nE 's/.*--only (\S+).*/\1/p' <<<"$*") amp=$(sed -nE 's/.*--amp (\S+).*/\1/p' <<<"$*")
mode=$(sed -nE 's/.*--mode (\S+).*/\1/p' <<<"$*")
for name in ${only//,/ }; do
  echo "{\"name\": \"$name\", \"framework\": \"torch 2.9.0\", \"mode\": \"$mode\", \"amp\": \"$amp\", \"step_s\": 0.0003}"
done
FAKE
cat >"$work/tools/compute-sanitizer" <<'FAKE'
#!/usr/bin/env bash
tool=$2
while [[ $1 != */test_cuda ]]; do shift; done
"$@" || exit
[[ ${PRETEND_SANITIZER:-} == "$tool" ]] && { echo "========= Invalid something"; exit 86; }
echo "========= ERROR SUMMARY: 0 errors"
FAKE
cat >"$work/tools/nvidia-smi" <<'FAKE'
#!/usr/bin/env bash
[[ $* == *clocks_event* ]] && exit 1  # of an older driver
if [[ $* == *" -l "* ]]; then
  echo "now, 1980, 2619, 650.5, 61, 99, 0x0000000000000004"
  echo "now, 1410, 2619, 80.0, 40, 0, 0x0000000000000001"
  exec sleep 1000
fi
[[ $* == *memory.free* ]] && { echo 80000; exit; }
echo "Pretended, 580.1"
FAKE
chmod +x "$work"/bundle/bin/* "$work"/tools/*
export PATH=$work/tools:$PATH PYTHON=false HANGING=$work/hanging PYTORCH_CALLS=$work/pytorch_calls
mkdir -p "$work/out/cache"

failures=0
# try NAME STATUS ARGUMENT...: runs the script, which must end with that status.
try() {
  local name=$1 expected=$2 status=0
  shift 2
  rm -rf "$work/out"
  mkdir -p "$work/out/cache"
  "$work/bundle/on_device.sh" --out "$work/out" "$@" >"$work/printed" 2>&1 || status=$?
  case_name=$name
  [[ $status == "$expected" ]] || { echo "$name: status $status, expected $expected"; cat "$work/printed"; ((++failures)); }
}
says() { grep -qF -- "$1" "$work/out/report.md" || { echo "$case_name: the report lacks: $1"; cat "$work/out/report.md"; ((++failures)); }; }
tests_only="test_cuda,test_cuda_step,attention,kernels,benchmarks"

export PRETEND="All/Suite.Test/4=distance All/Suite.Test/5=skip" PRETEND_STEP=""
try "all passed" 0 --only $tests_only
says "test_cuda: 20 of 21 passed, 0 failed, 1 skipped, 0 took their process down or ran out of time, 0 not run"
says "test_cuda_step: 24 of 24 passed"
says "cuDNN 91900 for CUDA 13000, runtime 13000"
says "cuda:cudnn:pretended: 1.5 ms"
says "* All/Suite.Test/4: 3 units"
says "SM clock 1410 to 1980 MHz, memory clock 2619 to 2619 MHz, 80 to 650.5 W, 40 to 61 C, clocks held back by 0x"
says "All passed"
says '    {"name": "softmax/1024", "dtype": "f16", "gb_s": 3000.5}'
says "| softmax/1024 | f16 | $work/out/cache | --seconds=45"
says "| resnet50 | f16 | 0.1000 | - | - | - |"
says "| mlp | bf16 | 0.1000 | - | - | - |"
[[ -s $work/out/cache/autotune.txt ]] || { echo "the cache of tuned plans is not kept"; ((++failures)); }

# One aborts, one breaks the device for those behind it, one only fails: the others of all four processes pass.
PRETEND="All/Suite.Test/2=crash All/Suite.Test/3=sticky All/Suite.Test/9=fail All/Suite.Test/6=crash"
PRETEND_STEP="All/Suite.Test/1=crash"
try "fatal errors" 1 --only $tests_only
says "test_cuda: 17 of 21 passed, 2 failed, 0 skipped, 2 took their process down or ran out of time, 0 not run"
says "* crashed All/Suite.Test/2"
says "* crashed All/Suite.Test/6"
says "* failed All/Suite.Test/3"
says "* failed All/Suite.Test/9"
says "test_cuda_step: 23 of 24 passed, 0 failed, 0 skipped, 1 took their process down"
says "Not passed: test_cuda test_cuda_step;"

# One hangs: its process ends with the time, and what it kept from running is said.
PRETEND="All/Suite.Test/1=hang" PRETEND_STEP=""
HALFTONE_ON_DEVICE_SECONDS=8 try "a test that hangs" 1 --only test_cuda,test_cuda_step
says "* stopped All/Suite.Test/1"
says "1 took their process down or ran out of time, 5 not run"
says "test_cuda_step: left out, 8 s are over"
[[ ! -e $HANGING ]] || xargs kill <"$HANGING" 2>/dev/null

# PyTorch beside: the large workloads in f16 first, its compiler warmed while the tests run.
rm -f "$PYTORCH_CALLS"
PRETEND=""
PYTHON=python_with_torch try "with PyTorch" 0 --only test_cuda,benchmarks
says "PyTorch's compiler was warmed beside the tests: "
says "| gpt2_small | f16 | 0.1000 | 0.3000 | 0.3000 | 0.3000 | 3.00 | 3.00 | 3.00 |"
says "Programs left out for want of time: 0."
first=$(grep -m1 -- '--blocks 15' "$PYTORCH_CALLS")
[[ $first == *"--only resnet50,bert_base,gpt2_small --amp f16 --mode eager --steps 10 --blocks 15 --channels-last --fused" ]] ||
  { echo "the first call of PyTorch is $first"; ((++failures)); }
[[ $(head -1 "$PYTORCH_CALLS") == *"--amp f16 --mode compile --steps 1 --blocks 1 "* ]] ||
  { echo "nothing is warmed: $(head -1 "$PYTORCH_CALLS")"; ((++failures)); }

PRETEND_KERNELS=fail try "a kernel that fails" 1 --only kernels
says "device_kernels: add f16: no kernel"
says "Not passed: kernels;"
HALFTONE_ON_DEVICE_SECONDS=8 PRETEND_KERNELS=hang try "kernels that take too long" 0 --only kernels
says "the lines of JSON above are what was timed"
says '    {"name": "softmax/1024", "dtype": "f16", "gb_s": 3000.5}'

try "sanitizers" 0 --only memcheck,racecheck,synccheck
says "memcheck: found nothing; "
says "synccheck: found nothing; "
PRETEND_SANITIZER=synccheck try "a barrier that not all reach" 1 --only racecheck,synccheck
says "racecheck: found nothing; "
says "synccheck: found errors"
says "Not passed: synccheck;"

PRETEND="no_device"
try "no device" 3
says "Nothing can run: no CUDA device: device cuda:0: no NVIDIA driver is installed"
rm "$work/bundle/bin/test_cuda"
try "no programs" 2
try "a part that is none" 2 --only racing
((failures == 0)) && echo "on_device.sh: all as expected"
