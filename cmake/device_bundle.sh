#!/usr/bin/env bash
# Collects what runs on a machine with a GPU. Usage: cmake/device_bundle.sh BUILD OUT
#   bin/    programs, stripped       lib/   the CUDA module, and the libraries that all need
#   data/   2,000 training images    peers/ the benchmark in PyTorch
#   on_device.sh; bundle.txt with the commit and what the machine must have
# Not CUDA's libraries, nor those of the C and C++ compilers: a machine with a GPU has both.
set -euo pipefail
build=$1 out=$2
data=${HALFTONE_FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
images=2000
max_mib=60
cuda='lib(cuda|cudart|cublas|cublasLt|cudnn[a-z_]*|nvrtc|nvJitLink|nvrtc-builtins)\.so'
system='(linux-vdso|ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so'
cd "$(dirname "$0")/.."

rm -rf "$out"
cmake --install "$build" --component device_bundle --prefix "$out" --strip >/dev/null
mkdir -p "$out/data"

for file in "$out"/bin/* "$out"/lib/*; do
  # "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)", or "=> not found"
  ldd "$file" | sed -nE 's/^\s*(\S+) => (.*\S)( \(0x.*|$)/\1 \2/p'
done | sort -u | while read -r name path; do
  if [[ $name =~ ^$cuda || $name =~ ^$system || $path == "$out"/* ]]; then
    continue
  fi
  if [[ ! -f $path ]]; then
    echo "device_bundle: $name: $path" >&2
    exit 1
  fi
  cp -L "$path" "$out/lib/$name"
  chmod u+w "$out/lib/$name"
done

# IDX: a big-endian count after the four bytes that name the type.
count=$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' 0 0 $((images / 256)) $((images % 256)))
# subset FILE HEADER_BYTES BYTES_PER_ITEM
subset() {
  local bytes=$(($2 + images * $3)) file=$out/data/$1
  (gzip -dc "$data/$1.gz" || true) 2>/dev/null | head -c "$bytes" >"$file"
  [[ $(stat -c %s "$file") == "$bytes" ]] || { echo "device_bundle: $data/$1.gz is short" >&2; exit 1; }
  printf '%b' "$count" | dd of="$file" bs=1 seek=4 conv=notrunc status=none
  gzip -9n "$file"
}
subset train-images-idx3-ubyte 16 784
subset train-labels-idx1-ubyte 8 1

newest() { objdump -T "$out"/bin/* "$out"/lib/* | grep -oE "$1_[0-9.]+" | sort -uV | tail -1; }
{
  commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
  [[ -z $(git status --porcelain 2>/dev/null) ]] || commit+=" with changes"
  echo "commit: $commit"
  echo "needs: $(newest GLIBC) $(newest GLIBCXX)" \
    "$(objdump -p "$out"/bin/* "$out"/lib/* | sed -nE "s/^ *NEEDED +($cuda.*)/\1/p" | sort -u | xargs)"
} >"$out/bundle.txt"
# Large files travel packed; on_device.sh unpacks them.
find "$out/bin" "$out/lib" -size +1M -exec gzip -9n {} +

mib=$(($(du -s --apparent-size -k "$out" | cut -f1) / 1024 + 1))
echo "$out: $mib MiB; $(tr '\n' ';' <"$out/bundle.txt")"
if ((mib > max_mib)); then
  echo "device_bundle: $mib MiB; expected at most $max_mib" >&2
  exit 1
fi
