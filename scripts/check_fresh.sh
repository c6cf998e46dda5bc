#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves the two commands of the README on a bare machine: a fresh Debian 12 in a folder, made by debootstrap.
#
# Usage: scripts/check_fresh.sh [--no-test] [--keep]
#
# Takes the committed files into it, runs scripts/quickstart.sh twice (the second run may install and build nothing) and
# scripts/test.sh, and prints how long each took. --no-test leaves test.sh out; --keep leaves the folder, and names it.
# Needs root. Packages come from where this machine takes its own.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

keep=0
with_tests=1
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit ;;
    --keep) keep=1 ;;
    --no-test) with_tests=0 ;;
    *) die "unknown argument '$argument'" ;;
  esac
done
((EUID == 0)) || die "needs root, for debootstrap and chroot"
need_packages debootstrap

# What is mounted, and what still runs, goes with the namespaces when this script ends, however it ends.
if [[ -z ${GRADRING_FRESH_NAMESPACE-} ]]; then
  GRADRING_FRESH_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child "$script" "$@"
fi

fresh=$(mktemp -d "${TMPDIR:-/tmp}/gradring-fresh.XXXXXX")
clean_up() {
  umount "$fresh/proc" 2>/dev/null || true
  if ((keep)); then say "Kept: $fresh"; else rm -rf --one-file-system "$fresh"; fi
}
trap clean_up EXIT

# This machine's archive, proxy and certificates, where it is a Debian 12 itself; else debootstrap's own choice.
make_debian() {
  local mirror=() file
  if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
    # shellcheck disable=SC2016
    mapfile -t mirror < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
  fi
  debootstrap --variant=minbase bookworm "$fresh" "${mirror[@]}"
  if ((${#mirror[@]})); then
    for file in sources.list sources.list.d keyrings trusted.gpg.d; do
      rm -rf "$fresh/etc/apt/$file"
      if [[ -e /etc/apt/$file ]]; then cp -a "/etc/apt/$file" "$fresh/etc/apt/"; fi
    done
    cp -a /usr/share/keyrings/. "$fresh/usr/share/keyrings/"
  fi
  apt-config dump | grep -E '^Acquire::(https?|ftp|Retries|Check)' >"$fresh/etc/apt/apt.conf.d/99host" || true
  mkdir -p "$fresh/etc/ssl/certs"
  if [[ -f /etc/ssl/certs/ca-certificates.crt ]]; then
    cp /etc/ssl/certs/ca-certificates.crt "$fresh/etc/ssl/certs/"
  fi
  cp -L /etc/resolv.conf "$fresh/etc/resolv.conf"
  mount -t proc proc "$fresh/proc"
  mkdir "$fresh/gradring"
  git archive HEAD | tar -x -C "$fresh/gradring"
}

timings=()
# inside NAME COMMAND: runs it in the fresh Debian; its output also goes to NAME.log there.
inside() {
  local name=$1 began=$SECONDS
  shift
  say "In the fresh Debian: $*"
  env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    chroot "$fresh" bash -c "cd /gradring && $*" </dev/null 2>&1 | tee "$fresh/$name.log"
  timings+=("$(printf '%-12s %4d s' "$name" $((SECONDS - began)))")
}

make_debian
timings+=("$(printf '%-12s %4d s' debootstrap "$SECONDS")")
inside quickstart scripts/quickstart.sh
inside again scripts/quickstart.sh
grep -q 'ninja: no work to do' "$fresh/again.log" || die "the second quickstart built something"
if grep -E '==> (Installing|Configuring)' "$fresh/again.log"; then die "the second quickstart installed or configured"; fi
if ((with_tests)); then inside test scripts/test.sh; fi
say "Both commands end well in a fresh Debian 12"
printf '%s\n' "${timings[@]}"
