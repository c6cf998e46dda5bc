#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plants the bug of a lesson, and runs the tests that must find it; then judges your fix.
#
# Usage: scripts/exercise.sh EXERCISE              plants the bug, builds, and runs the tests: they must find it
#        scripts/exercise.sh EXERCISE --fixed      builds and runs the same tests on the code as it is now: your fix
#        scripts/exercise.sh EXERCISE --undo       takes the planted bug back
#        scripts/exercise.sh --list
#        scripts/exercise.sh --all [EXERCISE...]   all three for each exercise, in a copy of HEAD (build/exercises); takes long
#
# EXERCISE is a name that --list prints, or the path of its patch. A patch of a lesson has before its first --- the lines
#
#   preset: tsan                          with which the tests are built
#   suite: kernels                        the test program, test_kernels, and the start of its tests' names
#   tests: Bias                           the tests to run: a regular expression for what follows "kernels."
#   found by: Bias.SumsTheGradient.*      those of them of which one must fail
#
# Exit status: 0 if the bug was found, or your fix passes; else 1, also if no test ran.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# patches: of all exercises.
patches() { find kernels train -name '*.patch' | sort; }

# name_of PATCH: the patch's own name, or its folder's.
name_of() {
  local name
  name=$(basename "$1" .patch)
  if [[ $name == planted_bug ]]; then basename "$(dirname "$1")"; else echo "$name"; fi
}

# find_patch EXERCISE: prints its path.
find_patch() {
  local patch
  while read -r patch; do
    if [[ $1 == "$patch" || $1 == "$(name_of "$patch")" ]]; then echo "$patch"; return; fi
  done < <(patches)
  die "there is no exercise '$1'; --list prints their names"
}

# field NAME: of the patch's head.
field() {
  local value
  value=$(sed -n "/^--- /q;s/^$1: //p" "$patch")
  [[ -n $value ]] || die "$patch has no line '$1: ...' before its first '---'"
  echo "$value"
}

list() {
  local patch
  while read -r patch; do printf '%-19s %s\n' "$(name_of "$patch")" "$(dirname "$patch")/README.md"; done < <(patches)
}

is_planted() { git apply -R --check "$patch" 2>/dev/null; }

plant() {
  if is_planted; then say "The bug is planted already"; return; fi
  git apply "$patch" || die "$patch does not fit: something is changed around it; 'git diff' shows what"
  say "Planted the bug of $patch"
}

# build_tests: configures what scripts/quickstart.sh left without tests, and builds the one test program.
build_tests() {
  local options=(-DGRADRING_TESTS=ON -DGRADRING_ARCH=native)  # as scripts/sanitize.sh
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  [[ $preset != release ]] || options=(-DGRADRING_TESTS=ON "-DGRADRING_CPU_LEVELS=$(cached release GRADRING_CPU_LEVELS | grep . || echo native)"
    "-DGRADRING_CUDA=$(cached release GRADRING_CUDA | grep . || cuda_choice)")
  configure "$preset" "${options[@]}"
  say "Building test_$suite in build/$preset"
  "${fixed_addresses[@]}" cmake --build --preset "$preset" --target "test_$suite" || die "the code does not build: see above"
}

# run_exercise: its tests; sets `failing`, their names, and `count`, how many ran.
run_exercise() {
  local log=build/$preset/exercise.log
  say "Running the tests $suite.$tests"
  "${fixed_addresses[@]}" ctest --preset "$preset" --no-tests=error -L "^$suite\$" -R "^$suite\\.($tests)" >"$log" 2>&1 || true
  mapfile -t failing < <(sed -n '/^The following tests FAILED/,$s/^\t *[0-9]* - \(.*\) ([^()]*)$/\1/p' "$log")
  count=$(sed -n 's/.*tests failed out of \([0-9]*\)$/\1/p' "$log")
  ((${count:-0} > 0)) || { cat "$log"; die "no test ran: is the build of $preset complete?"; }
}

# demonstrate: plants the bug, and expects that one of the tests finds it.
demonstrate() {
  local test finders=()
  plant
  build_tests
  run_exercise
  for test in "${failing[@]}"; do
    if [[ $test =~ ^$suite\.($found_by) ]]; then finders+=("$test"); fi
  done
  if ((${#finders[@]} == 0)); then
    cat "build/$preset/exercise.log"
    die "missed: none of $count tests that must find the planted bug fails (expected: $found_by)"
  fi
  head -n 40 < <(sed -n '/^\[ RUN/,/^\[  FAILED/p' "build/$preset/exercise.log")
  say "Found: ${#failing[@]} of $count tests fail, as they must, among them ${finders[0]}"
  cat <<END
The whole output is in build/$preset/exercise.log. Now find the bug in the code, and correct it there. Then:
  scripts/exercise.sh $name --fixed
END
}

# judge: the code as it is.
judge() {
  ! is_planted || die "not fixed: the planted bug is still in $(sed -n 's|^+++ b/||p' "$patch" | paste -sd ' ')"
  build_tests
  run_exercise
  if ((${#failing[@]})); then
    cat "build/$preset/exercise.log"
    die "not fixed: ${#failing[@]} of $count tests fail: ${failing[*]}"
  fi
  say "Passed: your fix passes all $count tests"
}

undo() {
  is_planted || die "the bug of $patch is not planted, or changed: 'git diff' shows the changes, 'git checkout FILE' removes them"
  git apply -R "$patch"
  say "Took the bug of $patch back"
}

# try_all EXERCISE...: each in a copy of HEAD that is configured as scripts/quickstart.sh leaves it.
try_all() {
  local tree=$PWD/build/exercises name rows=() failed=0 verdict
  (($#)) || { mapfile -t names < <(list | cut -d ' ' -f 1); set -- "${names[@]}"; }
  git worktree prune
  [[ -e $tree/.git ]] || git worktree add -f --detach "$tree" HEAD
  git -C "$tree" checkout -q --force --detach "$(git rev-parse HEAD)"
  (cd "$tree" && configure release -DGRADRING_TESTS=OFF -DGRADRING_CPU_LEVELS=native "-DGRADRING_CUDA=$(cuda_choice)")
  mkdir -p build/exercise_logs
  for name in "$@"; do
    verdict=ok
    for action in '' --undo --fixed; do
      "$tree/scripts/exercise.sh" "$name" ${action:+"$action"} >"build/exercise_logs/$name$action.log" 2>&1 ||
        { verdict="FAILED${action:+ with $action}: build/exercise_logs/$name$action.log"; failed=1; break; }
    done
    git -C "$tree" checkout -q -- .
    say "$name: $verdict ($(elapsed))"
    rows+=("$(printf '%-19s %s' "$name" "$verdict")")
  done
  printf '%s\n' "${rows[@]}"
  return "$failed"
}

case ${1-} in
  '' | -h | --help) usage; exit ;;
  --list) list; exit ;;
  --all) shift; try_all "$@"; exit ;;
esac
patch=$(find_patch "$1")
name=$(name_of "$patch")
preset=$(field preset)
suite=$(field suite)
tests=$(field tests)
found_by=$(field 'found by')
case ${2-} in
  '') demonstrate ;;
  --fixed) judge ;;
  --undo) undo ;;
  *) die "unknown option '$2', expected --fixed or --undo" ;;
esac
