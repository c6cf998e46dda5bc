#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For gpu_check.sh: runs one check, in a process of its own that can be ended.
#
# Usage: run.sh NAME
#
# A check ends by `passed`, `fail` or `not_made`, which note its outcome. One that ends otherwise has failed.

set -euo pipefail
shopt -s inherit_errexit
program=$GPU_CHECK_PROGRAM
work=$GPU_CHECK_WORK
out=$GPU_CHECK_OUT
build=$GPU_CHECK_BUILD
data=$GPU_CHECK_DATA
gpus=$GPU_CHECK_GPUS           # their UUIDs, comma-separated
simulated=$GPU_CHECK_SIMULATED # 1: on simulated GPUs; else empty
here=$(dirname "${BASH_SOURCE[0]}")
check=$1

passed() { note "passed|$*"; exit 0; }
fail() { note "FAILED|$*"; exit 1; }
not_made() { note "not made|$*"; exit 1; }

# The first outcome is kept: what ends a subshell does not end the check.
note() {
  echo "$1" >&2
  [[ -e $work/$check.outcome ]] || printf '%s\n' "$1" >"$work/$check.outcome"
}

# run COMMAND...: sets `code` to its exit code; its output is in $work/output, too.
run() {
  printf '+ %s\n' "$*"
  code=0
  "$@" 2>&1 | tee "$work/output" || code=$?
}

# The last message of the command that `run` ran.
last_message() { { grep -aE '^gradring|rror' "$work/output" || cat "$work/output"; } | tail -n 1; }

# must COMMAND...: fails if it does.
must() {
  run "$@"
  ((code == 0)) || fail "exit code $code: $(last_message)"
}

# shellcheck source=scripts/gpu_check/list.sh
source "$here/list.sh"
# shellcheck source=scripts/gpu_check/simulated.sh
source "$here/simulated.sh"
[[ -z $simulated || -z ${not_simulated[$check]-} ]] || not_made "${not_simulated[$check]}"
# shellcheck source=scripts/gpu_check/sizes.sh
source "$here/sizes.sh"
# shellcheck source=scripts/gpu_check/kernels.sh
source "$here/kernels.sh"
# shellcheck source=scripts/gpu_check/training.sh
source "$here/training.sh"
# shellcheck source=scripts/gpu_check/ranks.sh
source "$here/ranks.sh"
# shellcheck source=scripts/gpu_check/speed.sh
source "$here/speed.sh"
"check_$check"
