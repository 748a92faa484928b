# Part of on_device.sh: what is timed, and PyTorch's compiler warmed before it.
# Uses $ours, $bundle, $out, $work, $python, and the functions of on_device.sh.

# Steps in a block of each group of workloads; the groups and precisions whose rows say most come first.
groups=("resnet50 bert_base gpt2_small|10" "mlp fashion_cnn|100")
rows=("0 f16" "1 f16" "0 bf16" "0 off" "1 off" "1 bf16")
# What one program may take, so that one that has to tune or to compile much leaves time for the others; what it has
# tuned and compiled until then is kept for the next round.
seconds_of_one=50
# Of free memory, for a compiler that runs beside the tests.
warming_mib=40000

# PyTorch's side of workloads $1 (a,b), precisions $2 (a,b), in mode $3 with $4 steps a block and $5 blocks.
pytorch() {
  TORCHINDUCTOR_FX_GRAPH_CACHE=1 exec "$python" "$bundle/peers/torch_workloads.py" --device cuda --only "$1" \
    --amp "$2" --mode "$3" --steps "$4" --blocks "$5" --channels-last --fused
}
export -f pytorch

# Sets $torch to the version of a PyTorch that sees the device; else "".
find_pytorch() {
  torch=$(timeout 60 "$python" -c 'import torch; print(torch.__version__ if torch.cuda.is_available() else "")' 2>/dev/null)
}

# Beside the tests: the first import of PyTorch, and its compiler's caches, if the card has the memory.
warming=""
warm_pytorch() {
  local free
  free=$(timeout 20 nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits 2>/dev/null | head -1)
  [[ $free =~ ^[0-9]+$ ]] && ((free >= warming_mib)) || return 0
  export python bundle
  # A process group of its own: its compiler starts others.
  setsid bash -c '
    for mode in compile reduce-overhead; do
      for amp in f16 bf16 off; do
        (pytorch "$1" $amp $mode 1 1)
      done
    done' warming "$(all_workloads)" >"$work/warming" 2>&1 &
  warming=$!
}
stop_warming() {
  [[ -n $warming ]] || return 0
  kill -- "-$warming" 2>/dev/null
  wait "$warming" 2>/dev/null
  warming=""
  say "PyTorch's compiler was warmed beside the tests: $(grep -c '^{' "$work/warming") configurations" ""
}

all_workloads() { printf '%s\n' "${groups[@]%|*}" | tr '\n ' ',,' | sed 's/,$//'; }

# measure COMMAND...: its JSON lines go to the report at once. Nothing once the part's time is over.
measure() {
  local left=$((benchmarks_end - SECONDS)) rc=0
  ((left > 5)) || { ((++left_out)); return 0; }
  run $((left < seconds_of_one ? left : seconds_of_one)) "$@" || rc=$?
  grep '^{' "$output" | sed 's/^/    /' | tee -a "$lines" >>"$report"
  ((rc == 0)) && return
  say "status $rc: ${*: -6}: $(grep -v '^{' "$output" | tail -1 | cut -c1-200)"
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
  local began=$SECONDS row group amp mode workload names steps torch left_out=0
  benchmarks_end=$((SECONDS + $(left_for benchmarks)))
  lines=$out/.lines
  : >"$lines"
  find_pytorch
  [[ -n $torch ]] || say "PyTorch: left out, $python has none that sees the device" ""
  export python bundle
  for _ in 1 2 3; do
    for row in "${rows[@]}"; do
      read -r group amp <<<"$row"
      IFS='|' read -r names steps <<<"${groups[group]}"
      for workload in $names; do
        # The choices of kernels are kept: tuned once, and to be looked at.
        measure "${ours[@]}" "HALFTONE_CACHE_DIR=$out/cache" "$bundle/bin/train_step" --device=cuda \
          --workload="$workload" --amp="$amp" --steps="$steps" --kernels
      done
      [[ -n $torch ]] || continue
      for mode in eager compile reduce-overhead; do
        measure bash -c 'pytorch "$@"' pytorch "${names// /,}" "$amp" "$mode" "$steps" 15
      done
    done
  done
  say "" "Training steps on $card; PyTorch ${torch:-none}. Both: milliseconds a step by the host's clock, median over blocks" \
    "of steps between two waits for the device, best of up to three rounds in turn; inputs copied in each step, no TF32." \
    "PyTorch with channels-last images and fused optimizers. Programs left out for want of time: $left_out." ""
  say "$(table)" ""
  grep -q '"halftone"' "$lines" || fail benchmarks
  json "{\"part\": \"benchmarks\", \"lines\": $(wc -l <"$lines"), \"left_out\": $left_out, \"seconds\": $((SECONDS - began))}"
  rm -f "$lines"
}

# The program ends by itself some seconds before its time is over; one kernel may take some seconds to choose.
kernels() {
  local rc=0 began=$SECONDS left
  left=$(left_for kernels)
  run "$left" "${ours[@]}" "HALFTONE_CACHE_DIR=$out/cache" "$bundle/bin/device_kernels" \
    --seconds=$((left > 25 ? left - 15 : left / 2)) || rc=$?
  grep '^{' "$output" | sed 's/^/    /' >>"$report"
  say "" "$(sed -n '/^{/!p' "$output" | cut -c1-2000)" ""
  json "{\"part\": \"kernels\", \"lines\": $(grep -c '^{' "$output"), \"status\": $rc, \"seconds\": $((SECONDS - began))}"
  if ((rc == 124)); then
    say "kernels: ended after $left s; the lines of JSON above are what was timed" ""
  elif ((rc != 0)); then
    fail kernels
  fi
}
