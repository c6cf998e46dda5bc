#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that a simulated GPU can check, of which CI runs a part.
#
# Usage: scripts/simulated_gpu.sh [SEEDS]
#
# Builds build/release with the CUDA side and runs, on simulated GPUs:
#   the tests of all kernels, all variants, types and shapes, on an H100 with every seed of SEEDS (default: 1-20; ranges and
#   numbers, as in 1-3,7), and on an A100 with the first of them
#   gradring bench kernels: every variant at its usual shapes in FP32, FP16 and BF16, on both cards
#   scripts/count_lessons.py --check: the counted tables of the lessons; another nvcc than 13.0 may count otherwise
#   the other tests that run on a simulated GPU
# Prints what each part checked and the seconds of CPU that it took; ends with an error if anything is wrong. Needs nvcc.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1-} in -h | --help) usage; exit ;; esac
seeds=${1:-1-20}
logs=build/simulated_gpu
mkdir -p "$logs"
report=()
failed=0
TIMEFORMAT=%U

# part NAME PATTERN COMMAND...: runs it and keeps its output in build/simulated_gpu/NAME.log; the lines that match are its result.
part() {
  local name=$1 pattern=$2 outcome=ok log=$logs/$1.log cpu
  shift 2
  say "$name"
  cpu=$({ time "$@" >"$log" 2>&1; } 2>&1) || outcome=FAILED
  if [[ $outcome == FAILED ]]; then
    failed=1
    tail -n 40 "$log"
  fi
  report+=("$(printf '%-22s %-6s %7.0f s of CPU   %s' "$name" "$outcome" "$cpu" "$(grep -hE "$pattern" "$log" | tail -n 2 | paste -sd ' ')")")
  printf '%s\n' "${report[-1]}"
}

need_packages "${build_packages[@]}" "${test_packages[@]}"
configure release -DGRADRING_TESTS=ON -DGRADRING_CPU_LEVELS=all -DGRADRING_CUDA=ON
say "Building build/release"
cmake --build --preset release

kernels=build/release/tests/kernels/on_simulated_gpu/test_kernels_on_simulated_gpu
filter='-*OnCpu.*:*.Reference*:*.Rejects*'
counted='^\[  PASSED|^\[  FAILED|^Executed'
hopper='WarpgroupMma.*:BulkLoad.*:BarrierPipe.*' # instructions that an A100 lacks
part "kernels_h100" "$counted" env GRADRING_TEST_SEEDS="$seeds" "$kernels" "--gtest_filter=$filter"
grep -qE 'launches of ([0-9]+) of \1 kernels' "$logs/kernels_h100.log" || {
  failed=1
  report+=("FAILED: not every kernel was executed on an H100; GRADRING_TEST_LIST_UNUSED=1 lists the others")
}
part "kernels_a100" "$counted" env GRADRING_TEST_GPU=a100 GRADRING_TEST_SEEDS="${seeds%%[-,]*}" "$kernels" \
  "--gtest_filter=$filter:$hopper"
for card in h100 a100; do
  for dtype in fp32 fp16 bf16; do
    part "bench_${card}_$dtype" 'results,' build/release/gradring bench kernels --device cuda --simulate-gpu "$card" --dtype "$dtype"
  done
done
part lessons '[0-9] tables' scripts/count_lessons.py --check
part other_tests '[0-9] passed,' run_tests release -R 'simulated|/cuda(_|$)|ModuleWithGpus' -E '^kernels_on_simulated_gpu'

say "Summary, $(elapsed)"
printf '%s\n' "${report[@]}"
exit "$failed"
