#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks both commands of the README in fresh systems: Debian 12 and 13, each as root and as a user with sudo.
#
# Usage: scripts/check_fresh.sh [OPTION...]
#
#   --suite S      Debian to check: bookworm (12), trixie (13) or all (default all)
#   --user U       account that runs the commands: root, sudo or all (default all)
#   --no-test      without scripts/test.sh
#   --keep         keeps the systems and prints their folders
#   --ccache DIR   compiler cache for repeated runs: the systems get ccache, with its cache in DIR (created if missing; its
#                  files change owner). Without it, every build is a cold one, as a new user's.
#
# Each system is made by debootstrap in a folder below TMPDIR (default /var/tmp; 4 GB). The committed files are cloned to
# a path with spaces, and every command runs with umask 077: scripts/quickstart.sh, the same again, which may install and
# build nothing, and scripts/test.sh. root has the minimal system; the user has sudo without a password and git, and may
# end with no file of another owner in the home directory. Prints a table at the end; the exit status is 1 if a command
# failed. Needs root. Packages come from this machine's Debian archive, of the same name for the other suite, and
# signatures are checked; on other distributions from debootstrap's default.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/check_fresh/debian.sh
source scripts/check_fresh/debian.sh

suites=(bookworm trixie)
users=(sudo root)
with_tests=1
keep=0
ccache=
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --suite)
      case ${2-} in
        bookworm | trixie) suites=("$2") ;;
        all) suites=(bookworm trixie) ;;
        *) die "$1 is '${2-}': expected bookworm, trixie or all" ;;
      esac
      shift 2
      ;;
    --user)
      case ${2-} in
        root | sudo) users=("$2") ;;
        all) users=(sudo root) ;;
        *) die "$1 is '${2-}': expected root, sudo or all" ;;
      esac
      shift 2
      ;;
    --ccache)
      [[ -n ${2-} ]] || die "$1 needs a folder"
      ccache=$(from_here "$2")
      shift 2
      ;;
    --no-test) with_tests=0; shift ;;
    --keep) keep=1; shift ;;
    *) die "unknown argument '$1'; --help lists the options" ;;
  esac
done
((EUID == 0)) || die "needs root, for debootstrap and chroot"
need_packages debootstrap git
commit=$(git describe --always --dirty --abbrev=8 --exclude='*')
[[ $commit != *-dirty ]] || say "Uncommitted changes are not checked"

readonly homes=/home
readonly checkout="$homes/user/my projects/grad ring"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/gradring-fresh.XXXXXX")
chmod 755 "$work"
child=
clean_up() {
  # The command's first process is killed with unshare, and with it all others and their mounts.
  if [[ -n $child ]]; then kill -KILL "$child" 2>/dev/null && wait "$child" 2>/dev/null; fi || true
  if ((keep)); then say "Kept: $work"; else rm -rf --one-file-system "$work"; fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

rows=()
row() { rows+=("$(printf '%-13s %-5s %-14s %8s  %s' "$@")"); }

# inside SYSTEM ACCOUNT COMMAND...: runs it in the checkout there; its output also goes to SYSTEM.log.
inside() {
  local root=$work/$1 log=$work/$1.log account=$2 status=0 output copier
  shift 2
  exec {output}> >(tee "$log")
  copier=$!
  FRESH_CCACHE=$ccache unshare --mount --pid --fork --kill-child scripts/check_fresh/enter.sh "$root" "$account" \
    "$checkout" "$@" </dev/null >&"$output" 2>&1 &
  child=$!
  wait "$child" || status=$?
  child=
  exec {output}>&-
  wait "$copier" || true  # the log is complete
  return "$status"
}

# step NAME COMMAND...: runs it inside `system` as `account`, and adds a row to the table.
step() {
  local name=$1 began=$SECONDS status=0 result
  shift
  say "$title, $user: $*"
  inside "$system" "$account" "$@" || status=$?
  result=$(grep -oE '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$work/$system.log" | tail -n 1)
  ((status == 0)) || result="FAILED with exit status $status${result:+; $result}"
  row "$title" "$user" "$name" $((SECONDS - began)) "${result:-ok}"
  return "$status"
}

# What must hold after a command: CONDITION... succeeds; else the last row says MESSAGE.
expect() {
  local message=$1
  shift
  "$@" && return
  rows[-1]+="; FAILED: $message"
  return 1
}

built_nothing() { ! grep -qE '==> (Installing|Configuring)|Building C|Linking C' "$work/$system.log"; }
owns_everything() { [[ -z $(find "$work/$system$homes/user" ! -uid "$(stat -c %u "$work/$system$homes/user")" -print -quit) ]]; }

# check SUITE USER: all commands in the fresh system of both.
check() {
  local system=$1-$2 user=$2 account=root title
  [[ $user == root ]] || account=user
  title=$(title_of "$system")
  step quickstart scripts/quickstart.sh &&
    step "the same again" scripts/quickstart.sh &&
    expect "it installed, configured or built something" built_nothing &&
    if ((with_tests)); then step test scripts/test.sh; fi &&
    expect "files of another owner in the home directory" owns_everything
}

failures=0
for suite in "${suites[@]}"; do
  began=$SECONDS
  make_base "$suite"
  row "$(title_of "$suite")" - debootstrap $((SECONDS - began)) ok
  for user in "${users[@]}"; do
    copy_base "$suite" "$user"
    check "$suite" "$user" || failures=$((failures + 1))
    ((keep)) || rm -rf --one-file-system "${work:?}/$suite-$user"
  done
  rm -rf --one-file-system "${work:?}/$suite"
done

say "Fresh systems, commit $commit, umask 077, in \"$checkout\"${ccache:+, with a compiler cache}"
printf '%-13s %-5s %-14s %8s  %s\n' system user command seconds result
printf '%s\n' "${rows[@]}"
((failures == 0)) || die "$failures of $((${#suites[@]} * ${#users[@]})) systems failed"
