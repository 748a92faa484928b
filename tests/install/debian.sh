#!/usr/bin/env bash
# Runs a command in this tree on a Debian that has nothing but what the command itself installs:
#   tests/install/debian.sh RELEASE [COMMAND...]     RELEASE: 12 or 13; COMMAND: `make test` if none
# The system lies in build/debian/RELEASE/root, made by debootstrap from the mirror of this machine's
# apt (DEBIAN_MIRROR=URL: from another). It is kept, as is what is built there: the next run installs
# nothing and builds what has changed. Needs root. The exit status is the command's.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
  echo "debian.sh: $*" >&2
  exit 1
}

release=${1:-}
case $release in
  12) suite=bookworm ;;
  13) suite=trixie ;;
  *) fail "release \"$release\": expected 12 or 13" ;;
esac
shift
(($# > 0)) || set -- make test
(($(id -u) == 0)) || fail "needs root, to make a chroot and to enter it"
command -v debootstrap >/dev/null || fail "needs debootstrap; cmake/setup.sh ci installs it"

folder=$PWD/build/debian/$release
root=$folder/root
mkdir -p "$folder/build"

if [[ ! -d $root ]]; then
  mirror=${DEBIAN_MIRROR:-}
  if [[ -z $mirror ]]; then
    here=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    # shellcheck disable=SC2016 # apt's variables
    mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
      awk -v here="$here" '$1 == here { print $2; exit }')
    [[ -n $mirror ]] || fail "apt of this machine has no mirror of Debian; name one: DEBIAN_MIRROR=URL"
  fi
  mirror=${mirror%/}
  wget --quiet --spider --timeout=20 --tries=3 "$mirror/dists/$suite/InRelease" ||
    fail "cannot reach the mirror: no $mirror/dists/$suite/InRelease"
  # Under another name until it is whole: what was broken off is begun anew.
  rm -rf --one-file-system "$root.part"
  debootstrap --variant=minbase --include=make,ca-certificates "$suite" "$root.part" "$mirror" \
    >"$folder/debootstrap.log" 2>&1 || {
    tail -n 5 "$folder/debootstrap.log" >&2
    fail "debootstrap failed; all it said: $folder/debootstrap.log"
  }
  mkdir "$root.part/halftone"
  mv "$root.part" "$root"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"

variables=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 JOBS="${JOBS:-$(nproc)}")
for name in http_proxy https_proxy no_proxy; do
  if [[ -n ${!name:-} ]]; then variables+=("$name=${!name}"); fi
done

# Mounts and processes in namespaces of their own: both end with the command, however it ends, and
# nobody else sees them. The tree is read-only there, but for its build folder.
# shellcheck disable=SC2016 # for the inner shell
exec unshare --mount --propagation private --pid --fork --kill-child bash -euc '
  root=$1 tree=$2 build=$3
  shift 3
  mount --bind "$tree" "$root/halftone"
  mount -o remount,bind,ro "$root/halftone"
  mount --bind "$build" "$root/halftone/build"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  exec chroot "$root" env -i "$@"
' bash "$root" "$PWD" "$folder/build" "${variables[@]}" sh -c 'cd /halftone && exec "$@"' sh "$@"
