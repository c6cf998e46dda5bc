#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In a fresh Debian: installs a package of gradring-cuda-run and nvcc from PyPI, compiles a program with a race, and finds it.
#
# Usage: scripts/package/try_cuda.sh PACKAGE
#
#   PACKAGE   the .tar.gz or the .deb that scripts/package.sh cuda makes
#   --suite S Debian to try: bookworm (default) or trixie
#
# The system is made by debootstrap below TMPDIR (default /var/tmp; 3 GB) and has g++ and Python's venv besides. Prints a table
# with the seconds of each step; the exit status is 1 if a step failed, or all after the minimal system took five minutes.
# Needs root.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=scripts/check_fresh/debian.sh
source scripts/check_fresh/debian.sh

suite=bookworm package=
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --suite) suite=${2:?"--suite needs a name"}; shift 2 ;;
    *) package=$(from_here "$1"); shift ;;
  esac
done
[[ -f $package ]] || die "expected a .tar.gz or .deb of gradring-cuda-run; --help says more"
((EUID == 0)) || die "needs root, for debootstrap and chroot"
need_packages debootstrap

work=$(mktemp -d "${TMPDIR:-/var/tmp}/gradring-try-cuda.XXXXXX")
chmod 755 "$work"
trap 'rm -rf --one-file-system "$work"' EXIT
# shellcheck disable=SC2034
ccache=  # of check_fresh, which this is without
system=$work/$suite
readonly homes=/home
readonly home=$homes/user

# as_user SCRIPT: bash runs it in the home directory of `user`.
as_user() {
  unshare --mount --pid --fork --kill-child scripts/check_fresh/enter.sh "$system" user "$home" bash -euo pipefail -c "$1" \
    </dev/null
}

rows=() total=0
# step NAME COMMAND...
step() {
  local name=$1 began=$SECONDS
  shift
  say "$name"
  "$@"
  rows+=("$(printf '%-34s %8d' "$name" $((SECONDS - began)))")
  total=$((total + SECONDS - began))
}

# Scripts in single quotes are expanded in the fresh system.
# shellcheck disable=SC2016
install_package() {
  install -D -m 644 -t "$system/packages" "$package" docs/cuda/reverse.cu
  case $package in
    *.deb) install_in "$system" "/packages/${package##*/}" ;;
    *) as_user 'mkdir gradring && tar -xf /packages/*.tar.gz -C gradring --strip-components 1
         echo "export PATH=\$HOME/gradring/bin:\$PATH" >.profile' ;;
  esac
}

# Wheels of nvcc 13. pip takes its settings and certificates from this machine, as apt does.
install_nvcc() {
  local file
  for file in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    if [[ -f $file ]]; then install -D -m 644 "$file" "$system$file"; fi
  done
  as_user 'python3 -m venv env
    env/bin/pip install --quiet nvidia-cuda-nvcc nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl'
}

# shellcheck disable=SC2016
in_environment='touch .profile; source .profile; source env/bin/activate; '
compile() { as_user "$in_environment"'gradring cuda nvcc /packages/reverse.cu -o reverse'; }
# shellcheck disable=SC2016
find_race() {
  as_user "$in_environment"'status=0
    gradring cuda run --error-exitcode 9 ./reverse 2>found.txt || status=$?
    cat found.txt
    [[ $status == 9 ]] && grep -q "race in shared memory" found.txt && grep -q "reverse.cu:[89]" found.txt'
}

make_base "$suite"
chroot "$system" /usr/sbin/useradd --create-home --shell /bin/bash user
step 'apt-get install g++ python3-venv' install_in "$system" g++ python3-venv
step "install ${package##*/}" install_package
step 'pip install nvidia-cuda-nvcc ...' install_nvcc
step 'gradring cuda nvcc reverse.cu' compile
step 'gradring cuda run ./reverse' find_race
printf '%-34s %8s\n' "Debian $(cat "$system/etc/debian_version")" seconds
printf '%s\n' "${rows[@]}"
printf '%-34s %8d\n' 'all' "$total"
((total < 300)) || die "took $total s, expected less than 300"
