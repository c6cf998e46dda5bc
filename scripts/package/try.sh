#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs packages in fresh Debian systems, and trains there on two ranks as an ordinary user.
#
# Usage: scripts/package/try.sh PACKAGE...
#
# A .tar.gz and a .whl are tried in Debian 12 and 13, .deb files, all at once, in the release that they were made for. Each
# system is made by debootstrap below TMPDIR (default /var/tmp); the .tar.gz gets nothing but the minimal system, and is moved
# after it was unpacked; Python is removed after pip has installed the wheel. Prints a table; the exit status is 1 if anything
# failed. Needs root.

# Scripts in single quotes are expanded in the fresh system.
# shellcheck disable=SC2016

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=scripts/check_fresh/debian.sh
source scripts/check_fresh/debian.sh

[[ ${1-} != -h && ${1-} != --help ]] || { usage; exit; }
tar='' wheel='' debs=()
for package in "$@"; do
  package=$(from_here "$package")
  [[ -f $package ]] || die "no file $package"
  case $package in
    *.tar.gz) tar=$package ;;
    *.whl) wheel=$package ;;
    *.deb) debs+=("$package") ;;
    *) die "'$package' is neither .tar.gz, .whl nor .deb" ;;
  esac
done
[[ -n $tar$wheel${debs[*]-} ]] || die "expected packages to try; --help says more"
case ${debs[*]-} in
  '') deb_suite= ;;
  *~debian12_*) deb_suite=bookworm ;;
  *~debian13_*) deb_suite=trixie ;;
  *) die "${debs[0]} was made for neither Debian 12 nor Debian 13, where packages are tried" ;;
esac
((EUID == 0)) || die "needs root, for debootstrap and chroot"
need_packages debootstrap

work=$(mktemp -d "${TMPDIR:-/var/tmp}/gradring-try.XXXXXX")
chmod 755 "$work"
trial=  # the process group of the one that runs
clean_up() {
  if [[ -n $trial ]]; then kill -KILL -- "-$trial" 2>/dev/null && wait "$trial" 2>/dev/null; fi || true
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# shellcheck disable=SC2034
ccache=  # of check_fresh, which this is without

# in_system ACCOUNT SCRIPT: bash runs SCRIPT in the home directory of ACCOUNT in $system.
in_system() {
  local account=$1 home
  home=$(awk -F: -v account="$account" '$1 == account { print $6 }' "$work/$system/etc/passwd")
  unshare --mount --pid --fork --kill-child scripts/check_fresh/enter.sh "$work/$system" "$account" "$home" \
    bash -euo pipefail -c "$2" </dev/null
}

# new_system SUITE NAME: $system, a copy of the suite's minimal system with the account `user`.
new_system() {
  system=$1-$2
  cp -a --reflink=auto "$work/$1" "$work/$system"
  chroot "$work/$system" /usr/sbin/useradd --create-home --shell /bin/bash user
}

# give FILE...: copies the files to where the user and root can read them, under /packages.
give() { install -D -m 644 -t "$work/$system/packages" "$@"; }

# has_module LISTING-COMMAND...: whether the package holds the CUDA module.
has_module() { "$@" | grep libgradring_cuda.so >/dev/null; }
list_debs() { local deb; for deb in "${debs[@]}"; do dpkg-deb --contents "$deb"; done; }

# train_there SETUP: trains by both programs of the PATH that SETUP leaves. The digits' accuracy shows that it learned.
train_there() {
  in_system user "$1"'
    gradring launch --nproc-per-node 2 train --dataset digits --epochs 1 --run-dir one
    gradrun --nproc-per-node 2 train --dataset digits --steps 2 --run-dir two
    for run in one two; do grep -qE "\"world_size\": *2\b" $run/summary.json; done
    grep -E "\"accuracy\": *(0\.9|1\b)" one/summary.json'
}

# check_cuda SETUP FOUND REASON: the `CUDA module` of doctor, and why --device cuda is refused on a machine without a driver.
check_cuda() {
  in_system user "$1"'
    gradring doctor >doctor.txt
    grep -E "CUDA module +'"$2"'$" doctor.txt
    status=0
    gradring train --device cuda --steps 1 --run-dir cuda 2>cuda.txt || status=$?
    cat cuda.txt
    [[ $status == 3 ]] && grep -q "'"$3"'" cuda.txt'
}

check_module() { check_cuda "$1" ".*/gradring/libgradring_cuda.so" "no CUDA device: "; }
check_no_module() { check_cuda "$1" none "no CUDA module"; }

try_tar() {
  local path='PATH="$HOME/moved here/gradring/bin:$PATH"'
  new_system "$1" tar
  give "$tar"
  in_system user 'tar -xf /packages/*.tar.gz && mkdir "moved here" && mv gradring-* "moved here/gradring"'
  train_there "$path"
  if has_module tar -tf "$tar"; then check_module "$path"; else check_no_module "$path"; fi
  in_system user "$path; gradring doctor | grep -A 1 -E 'curl +none' | grep ca-certificates"
  install_in "$work/$system" curl
  in_system user "$path; gradring doctor | grep -E 'curl +[0-9]'"
}

try_wheel() {
  local path='PATH="$HOME/env/bin:$PATH"'
  new_system "$1" wheel
  give "$wheel"
  install_in "$work/$system" python3-venv
  in_system user 'python3 -m venv env && env/bin/pip install --no-index /packages/*.whl && env/bin/pip check'
  in_system root 'rm /usr/bin/python3*'
  train_there "$path"
  if has_module python3 -m zipfile -l "$wheel"; then check_module "$path"; else check_no_module "$path"; fi
}

try_deb() {
  new_system "$1" deb
  give "${debs[@]}"
  install_in "$work/$system" "${debs[@]/#*\//\/packages\/}"
  train_there :
  if has_module list_debs; then check_module :; else check_no_module :; fi
  install_in "$work/$system" g++ pkg-config
  in_system user 'g++ -std=c++20 /usr/share/doc/gradring-dev/spirals.cpp $(pkg-config --cflags --libs gradring) -o spirals
    ./spirals | grep "^2 ranks"'
  in_system root 'apt-get purge -y -qq "gradring*"; find /usr /etc /var/lib/dpkg/info -name "*gradring*" | tee left; [[ ! -s left ]]'
}

# try_one FORMAT SUITE: adds a row to the table.
rows=()
failures=0
try_one() {
  local began=$SECONDS status=0 result=ok
  say "$1 in a fresh $2"
  # As `wait`, unlike `||`, lets a failing command end the trial.
  set -m
  "try_$1" "$2" &
  trial=$!
  set +m
  wait "$trial" || status=$?
  trial=
  ((status == 0)) || { result="FAILED with exit status $status"; failures=$((failures + 1)); }
  rows+=("$(printf '%-6s %-13s %8d  %s' "$1" "$(title_of "$2")" $((SECONDS - began)) "$result")")
  rm -rf --one-file-system "${work:?}/$2-$1"
}

for suite in bookworm trixie; do
  [[ -n $tar$wheel || $suite == "$deb_suite" ]] || continue
  make_base "$suite"
  if [[ -n $tar ]]; then try_one tar "$suite"; fi
  if [[ -n $wheel ]]; then try_one wheel "$suite"; fi
  if [[ $suite == "$deb_suite" ]]; then try_one deb "$suite"; fi
  rm -rf --one-file-system "${work:?}/$suite"
done
printf '%-6s %-13s %8s  %s\n' format system seconds result
printf '%s\n' "${rows[@]}"
((failures == 0)) || die "$failures of ${#rows[@]} trials failed"
