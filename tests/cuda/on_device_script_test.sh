#!/usr/bin/env bash
# on_device.sh with programs that only pretend: tests that fail, abort, break the device or hang, a card's clocks, and
# a machine without a device. Usage: on_device_script_test.sh FOLDER (to work in)
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1
rm -rf "$work"
mkdir -p "$work"/bundle/{bin,lib} "$work/tools"
cp "$here"/on_device.sh "$here"/on_device_shards.sh "$work/bundle"
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
echo '{"framework": "halftone", "name": "mlp", "amp": "off", "step_s": 0.0001}'
FAKE
cat >"$work/tools/nvidia-smi" <<'FAKE'
#!/usr/bin/env bash
[[ $* == *clocks_event* ]] && exit 1  # of an older driver
if [[ $* == *" -l "* ]]; then
  echo "now, 1980, 2619, 650.5, 61, 99, 0x0000000000000004"
  echo "now, 1410, 2619, 80.0, 40, 0, 0x0000000000000001"
  exec sleep 1000
fi
echo "Pretended, 580.1"
FAKE
chmod +x "$work"/bundle/bin/* "$work"/tools/*
export PATH=$work/tools:$PATH PYTHON=false HANGING=$work/hanging
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
tests_only="test_cuda,test_cuda_step,attention,benchmarks"

export PRETEND="All/Suite.Test/4=distance All/Suite.Test/5=skip" PRETEND_STEP=""
try "all passed" 0 --only $tests_only
says "test_cuda: 20 of 21 passed, 0 failed, 1 skipped, 0 took their process down or ran out of time, 0 not run"
says "test_cuda_step: 24 of 24 passed"
says "cuDNN 91900 for CUDA 13000, runtime 13000"
says "cuda:cudnn:pretended: 1.5 ms"
says "* All/Suite.Test/4: 3 units"
says "SM clock 1410 to 1980 MHz, memory clock 2619 to 2619 MHz, 80 to 650.5 W, 40 to 61 C, clocks held back by 0x"
says "All passed"
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

PRETEND="no_device"
try "no device" 3
says "Nothing can run: no CUDA device: device cuda:0: no NVIDIA driver is installed"
rm "$work/bundle/bin/test_cuda"
try "no programs" 2
try "a part that is none" 2 --only racing
((failures == 0)) && echo "on_device.sh: all as expected"
