#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that each exercise of a lesson can be done: its patch says how, its tests exist, its README names its command; and that
# scripts/exercise.sh tells a found bug from a missed one, and from tests that did not run.
#
# Usage: exercises_test.sh REPOSITORY complete BUILD-DIRECTORY
#        exercises_test.sh REPOSITORY judges
#        exercises_test.sh REPOSITORY configures
set -euo pipefail
repository=$1
failed=0
complain() { echo "$*" >&2; failed=1; }

# Each exercise, without building anything.
complete() {
  local all=0 build=$1 tests list name patch readme field suite found_by
  tests=$(ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: //p')
  list=$(scripts/exercise.sh --list)
  while read -r name readme; do
    all=$((all + 1))
    patch=$(find "$(dirname "$readme")" -name "$name.patch" -o -name planted_bug.patch | sort | tail -n 1)
    for field in preset suite tests 'found by'; do
      grep -q "^$field: ." "$patch" || complain "$patch has no line '$field: ...'"
    done
    git apply --check "$patch" || complain "$patch does not apply"
    suite=$(sed -n 's/^suite: //p' "$patch") found_by=$(sed -n 's/^found by: //p' "$patch")
    grep -qE "^$suite\.($(sed -n 's/^tests: //p' "$patch"))" <<<"$tests" || complain "$patch: no test of $suite matches 'tests'"
    grep -qE "^$suite\.($found_by)" <<<"$tests" || complain "$patch: no test of $suite matches 'found by'"
    grep -qE "\"name\": \"$(sed -n 's/^preset: //p' "$patch")\"" CMakePresets.json || complain "$patch: no such preset"
    grep -qE "scripts/exercise\.sh $name\b|\`$name\.patch\`|\(\`$name\`\)" "$readme" ||
      complain "$readme does not name the exercise $name"
  done <<<"$list"
  ((all > 20)) || complain "expected more than 20 exercises, found $all"
  while read -r name; do
    grep -q "^$name " <<<"$list" || complain "documents name the exercise '$name', which --list does not"
  done < <(grep -rhoE --include='*.md' 'scripts/exercise\.sh [a-z_0-9]+' kernels train docs | sed 's/.* //' | sort -u)
  echo "$all exercises"
}

# stand_ins: a folder of the test's own, `place`, and in it `copy`, without a repository, and programs that come first on PATH.
stand_ins() {
  place=$(mktemp -d)
  # shellcheck disable=SC2064  # now
  trap "rm -rf '$place'" EXIT
  copy=$place/copy
  mkdir -p "$copy/build" "$copy/train" "$place/bin"
  printf '#!/bin/sh\necho "install ok installed"\n' >"$place/bin/dpkg-query"
  export PATH=$place/bin:$PATH
}

# ran STATUS WORDS EXERCISE [OPTION]: runs exercise.sh in the copy, and compares its status and a part of its output.
ran() {
  local status=0
  output=$("$copy/scripts/exercise.sh" "${@:3}" 2>&1) || status=$?
  [[ $status == "$1" && $output == *"$2"* ]] ||
    complain "exercise.sh ${*:3} ended with $status, expected $1 and '$2': $output"
}

# What a quickstart has configured, without tests, is configured anew with the tests of an exercise: the build that is asked for is
# planned only.
configures() {
  stand_ins
  local real
  real=$(command -v cmake)
  git ls-files -z | xargs -0 cp --parents -t "$copy"
  (cd "$copy" && cmake --preset release -DGRADRING_TESTS=OFF -DGRADRING_CPU_LEVELS=native -DGRADRING_CUDA=OFF >/dev/null)
  # shellcheck disable=SC2016  # the stand-in's own arguments
  printf '#!/bin/sh\n[ "$1" = --build ] || exec %s "$@"\nexec ninja -C build/release -n "$5"\n' "$real" >"$place/bin/cmake"
  printf '#!/bin/sh\nprintf "%%s tests failed out of 2\\n\\nThe following tests FAILED:\\n\\t  1 - kernels.Scale.X (Failed)\\n" 1\n' >"$place/bin/ctest"
  chmod +x "$place/bin"/*
  ran 0 'Found: 1 of 2 tests fail' scale
  [[ $output == *'Configuring build/release'* && $output == *test_kernels* ]] || complain "test_kernels is not built: $output"
}

# On a copy of what it needs, with stand-ins for what configures, builds and tests: STAND_IN_FAILING is the test that fails.
judges() {
  stand_ins
  cp -r --parents scripts/exercise.sh scripts/lib.sh kernels/ops/gemm "$copy"
  cat >"$place/bin/cmake" <<'END'
#!/bin/sh
echo "cmake $*" >>build/calls
[ "$1" = --build ] || { mkdir -p build/asan && exec touch build/asan/build.ninja; }
exit "${STAND_IN_BUILD:-0}"
END
  cat >"$place/bin/ctest" <<'END'
#!/bin/sh
echo "ctest $*" >>build/calls
[ "$STAND_IN_FAILING" != none ] || { echo "No tests were found!!!"; exit 8; }
[ -n "$STAND_IN_FAILING" ] || { echo "100% tests passed, 0 tests failed out of 8"; exit 0; }
printf '50%% tests passed, 1 tests failed out of 8\n\nThe following tests FAILED:\n\t %s (Failed)\nErrors while running CTest\n' \
  "12 - $STAND_IN_FAILING"
exit 8
END
  chmod +x "$place/bin"/*
  export STAND_IN_FAILING=kernels.Gemm.StaysWithinItsBound
  cd "$place"  # in no repository
  ran 0 'Found: 1 of 8 tests fail, as they must, among them kernels.Gemm.StaysWithinItsBound' gemm
  ran 1 'not fixed: the planted bug is still in kernels/ops/gemm/strips.cu' gemm --fixed
  grep -qF 'a[i * k + row]' "$copy/kernels/ops/gemm/strips.cu" || complain "the bug is not planted"
  grep -q 'cmake --preset asan -DGRADRING_TESTS=ON' "$copy/build/calls" || complain "nothing was configured: $(cat "$copy/build/calls")"
  grep -q 'cmake --build --preset asan --target test_kernels' "$copy/build/calls" || complain "no tests were built"
  grep -qF 'ctest --preset asan --no-tests=error -L ^kernels$ -R ^kernels\.(Gemm)' "$copy/build/calls" || complain "no tests were run"
  STAND_IN_FAILING=kernels.Gemm.RequiresItsWorkspace ran 1 'missed: none of 8 tests' gemm
  STAND_IN_FAILING='' ran 1 'missed: none of 8 tests' gemm
  STAND_IN_FAILING=none ran 1 'no test ran' gemm
  STAND_IN_BUILD=1 ran 1 'does not build' gemm
  ran 0 'Took the bug of kernels/ops/gemm/planted_bug.patch back' gemm --undo
  cmp -s "$repository/kernels/ops/gemm/strips.cu" "$copy/kernels/ops/gemm/strips.cu" || complain "the code is not as it was"
  ran 1 'is not planted, or changed' gemm --undo
  STAND_IN_FAILING='' ran 0 'Passed: your fix passes all 8 tests' kernels/ops/gemm/planted_bug.patch --fixed
  ran 1 'not fixed: 1 of 8 tests fail: kernels.Gemm.StaysWithinItsBound' gemm --fixed
  STAND_IN_FAILING=none ran 1 'no test ran' gemm --fixed
  STAND_IN_BUILD=1 ran 1 'does not build' gemm --fixed
  echo '// another text' >"$copy/kernels/ops/gemm/strips.cu"
  ran 1 'does not fit' gemm
  ran 1 "there is no exercise 'gem'" gem
  ran 1 "unknown option '--fix'" gemm --fix
}

cd "$repository"
case $2 in
  complete) complete "$3" ;;
  judges) judges ;;
  configures) configures ;;
  *) complain "unknown part '$2', expected complete, judges or configures" ;;
esac
exit "$failed"
