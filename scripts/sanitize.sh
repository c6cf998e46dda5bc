#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the test suites under AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer.
#
# Usage: scripts/sanitize.sh [address|thread|all] [SUITES]
#
# SUITES is a regular expression on the suites' names, anchored at the start, such as 'comm|data' (default: every suite).
# Prints a table of suites and outcomes; ends with an error if any suite has a report or a failed test.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kinds=()
case ${1:-all} in
  -h | --help) usage; exit ;;
  address) kinds=(asan) ;;
  thread) kinds=(tsan) ;;
  all) kinds=(asan tsan) ;;
  *) die "unknown sanitizer '$1': say address, thread or all" ;;
esac
wanted="^(${2:-.*})"

table=()
failed=0
# run_suite PRESET SUITE: its tests by label, one row for the table, the whole log only if something is wrong.
run_suite() {
  local log=build/$1/sanitize_$2.log outcome=clean counts
  if ! "${fixed_addresses[@]}" ctest --preset "$1" -j2 --no-tests=error -L "^$2\$" >"$log" 2>&1; then
    cat "$log"
    outcome=FAILED
    failed=1
  fi
  counts=$(count_tests "$log")
  if [[ $counts == '0 passed, 0 failed'* ]]; then outcome=skipped; fi
  table+=("$(printf '%-6s %-28s %-7s %s' "$1" "$2" "$outcome" "$counts")")
}

need_packages "${build_packages[@]}" "${test_packages[@]}"
for preset in "${kinds[@]}"; do
  configure "$preset" -DGRADRING_TESTS=ON -DGRADRING_ARCH=native
  mapfile -t suites < <(ninja -C "build/$preset" -t targets all | suite_names | grep -E "$wanted")
  ((${#suites[@]})) || die "no suite begins with ${2-}"
  say "Building ${#suites[@]} suites in build/$preset"
  "${fixed_addresses[@]}" cmake --build --preset "$preset" --target "${suites[@]/#/test_}"
  say "Running them"
  for suite in "${suites[@]}"; do run_suite "$preset" "$suite"; done
done
printf '%-6s %-28s %-7s %s\n' preset suite outcome tests
printf '%s\n' "${table[@]}"
exit "$failed"
