#!/usr/bin/env bash
# Installs the packages of packages.txt that are missing. Usage: cmake/setup.sh GROUP...
# Asks for root (or sudo) only when something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v dpkg-query >/dev/null; then
  echo "setup: not a Debian system; install the equivalents of packages.txt by hand" >&2
  exit 0
fi

release=$(. /etc/os-release && [[ $ID == debian ]] && echo "${VERSION_ID:-}" || true)
wanted=()
for group in "$@"; do
  # No process substitution: /dev/fd needs /proc, which a bare chroot may lack.
  wanted+=($(awk -v g="$group" '$1 == g { print $2 }' packages.txt))
  elsewhere=$(awk -v g="$group" -v r="$release" \
    '$1 == g && $3 != "" && r != "" && $3 != r { print $2 ", which only Debian " $3 " has"; exit }' packages.txt)
  if [[ -n $elsewhere ]]; then
    echo "setup: group $group needs $elsewhere; this is Debian $release" >&2
    exit 1
  fi
done
missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=()
if (($(id -u) != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages: ${missing[*]}" >&2
    echo "setup: run as root, or install sudo, or: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get -qq update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -qq install -y --no-install-recommends "${missing[@]}"
