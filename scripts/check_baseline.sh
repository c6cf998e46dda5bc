#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the portable build's tests on an emulated x86-64-v2 processor: qemu-x86_64 -cpu Nehalem.
#
# Usage: scripts/check_baseline.sh [SUITES | --program PROGRAM]
#
# SUITES is a regular expression on the suites' names, such as 'comm|data' (default: every suite that can be emulated whole).
# Builds build/release, then runs each suite under qemu, which ends a program at the first instruction that the processor
# lacks; and a training of three steps, whose weights must be those of the same training on this processor at the level
# x86-64-v2, bit by bit. Prints a table of suites and outcomes; the exit status is 1 if any failed. lzcnt, which an older
# processor runs as bsr, is not seen by this: tests/rules/baseline_only.sh finds it.
#
# --program runs the training alone, by another program, such as build/portable/gradring, which packages hold.
#
# Suites that start the program or Python are left out: a program that an emulated one starts runs on the processor itself.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

program=$PWD/build/release/gradring
case ${1-} in
  -h | --help) usage; exit ;;
  --program) program=$(from_here "${2:?--program needs a program}"); wanted=none ;;
  *) wanted="^(${1:-.*})$" ;;
esac
not_whole='^(accuracy|fuzz_.*|gradring|install|kernels_simt_planted|launch|launch_peers|reference_losses|rules)$'
emulator=(qemu-x86_64 -cpu Nehalem)

need_packages "${build_packages[@]}" "${test_packages[@]}" qemu-user
[[ $(uname -m) == x86_64 ]] || die "this is $(uname -m): the portable build has one level here"
suites=()
if [[ $wanted != none ]]; then
  configure release -DGRADRING_TESTS=ON -DGRADRING_ARCH=portable "-DGRADRING_CUDA=$(cuda_choice)"
  mapfile -t suites < <(ninja -C build/release -t targets all | suite_names | grep -vE "$not_whole" | grep -E "$wanted")
  ((${#suites[@]})) || die "no suite that can be emulated whole has the name $1"
  say "Building ${#suites[@]} suites in build/release"
  cmake --build --preset release --target gradring "${suites[@]/#/test_}"
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rows=()
failed=0
# check NAME COMMAND...: a row for the table; the output is shown where it fails.
check() {
  local name=$1 log=$folder/$1.log began=$SECONDS result=passed
  shift
  "$@" >"$log" 2>&1 || { result="FAILED with exit status $?"; cat "$log"; failed=1; }
  rows+=("$(printf '%-32s %5d s  %s %s' "$name" $((SECONDS - began)) "$result" \
    "$(sed -nE 's/^\[  (PASSED|SKIPPED) +\] ([0-9]+) tests?[.,].*/\2 \L\1/p' "$log" | paste -sd' ')")")
  say "${rows[-1]}"
}

training=(train --dataset digits --steps 3 --batch-size 16 --threads 1)

# emulated_rank RANK WORLD_SIZE: one process of a run, which torchrun's variables describe.
# shellcheck disable=SC2317  # called by same_weights
emulated_rank() {
  RANK=$1 LOCAL_RANK=$1 WORLD_SIZE=$2 LOCAL_WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
    "${emulator[@]}" "$program" "${training[@]}" --run-dir "$folder/emulated_$2"
}

# same_weights WORLD_SIZE: emulated ranks end with the weights of ranks that this processor runs at the level x86-64-v2.
# shellcheck disable=SC2317  # called by check
same_weights() {
  local rank pids=() port=$((20000 + $$ % 10000))
  for ((rank = 1; rank < $1; rank++)); do emulated_rank "$rank" "$1" & pids+=($!); done
  emulated_rank 0 "$1" || { ((${#pids[@]} == 0)) || kill "${pids[@]}"; return 1; }
  for rank in "${pids[@]}"; do wait "$rank" || return 1; done
  grep 'x86-64-v2 code' "$folder/emulated_$1/logs/rank_0.log" &&
    GRADRING_CPU_LEVEL=x86-64-v2 "$program" launch --nproc-per-node "$1" "${training[@]}" --run-dir "$folder/real_$1" &&
    "$program" ckpt diff "$folder/emulated_$1" "$folder/real_$1"
}

export OMP_NUM_THREADS=1
for suite in "${suites[@]}"; do
  binary=$(find build/release/tests -type f -name "test_$suite" -perm -u+x)
  check "$suite" "${emulator[@]}" "$binary" --gtest_brief=1
done
if [[ -z ${1-} || $wanted == none ]]; then
  check weights_of_1_rank same_weights 1
  check weights_of_2_ranks same_weights 2
fi
say "Portable build under ${emulator[*]}, commit $(git describe --always --dirty --abbrev=8 --exclude='*'), $(date -I)"
printf '%s\n' "${rows[@]}"
exit "$failed"
