#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Feeds made-up files and messages to every parser, by clang's libFuzzer under AddressSanitizer and UndefinedBehaviorSanitizer.
#
# Usage: scripts/fuzz.sh [SECONDS] [PARSER...]
#
# SECONDS is for each parser (default: 60). The parsers are the folders of tests/fuzz/corpus (default: all of them). Builds in
# build/fuzz; what the fuzzers find interesting is kept in build/fuzz/corpus, what breaks a parser in build/fuzz/found.
# Prints a table; ends with an error if anything broke.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ ${1-} == -h || ${1-} == --help ]]; then usage; exit; fi
seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || die "'$seconds' is no number of seconds"
shift $(($# > 0))
parsers=("$@")
((${#parsers[@]})) || mapfile -t parsers < <(ls tests/fuzz/corpus)
for parser in "${parsers[@]}"; do
  [[ -d tests/fuzz/corpus/$parser ]] || die "there is no parser '$parser': $(ls -m tests/fuzz/corpus)"
done

# The newest clang with its fuzzer that is installed, or Debian 12's.
newest_clang() {
  local version
  for version in {25..16}; do
    compgen -G "/usr/lib/llvm-$version/lib/clang/*/lib/*/libclang_rt.fuzzer-*.a" >/dev/null || continue
    command -v "clang++-$version" >/dev/null && echo "$version" && return
  done
  echo 16
}

clang=$(newest_clang)
need_packages "${build_packages[@]}" "${test_packages[@]}" "clang-$clang" "libclang-rt-$clang-dev"
if [[ ! -f build/fuzz/build.ninja ]]; then
  say "Configuring build/fuzz"
  cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER="clang++-$clang" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_CXX_FLAGS='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined' \
    -DGRADRING_ARCH=native -DGRADRING_CUDA=OFF -DGRADRING_ONEDNN=OFF \
    -DGRADRING_TESTS=ON -DGRADRING_FUZZ=ON
fi
say "Building ${#parsers[@]} fuzzers"
ninja -C build/fuzz "${parsers[@]/#/fuzz_}"

failed=0
table=()
# run_fuzzer PARSER: its row of the table, the end of its log if something broke.
run_fuzzer() {
  local corpus=build/fuzz/corpus/$1 found=build/fuzz/found/$1- log=build/fuzz/$1.log outcome=clean
  mkdir -p "$corpus" build/fuzz/found
  if ! "build/fuzz/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=8192 \
    -print_final_stats=1 -artifact_prefix="$found" "$corpus" "tests/fuzz/corpus/$1" >"$log" 2>&1; then
    tail -n 40 "$log"
    outcome=BROKEN
    failed=1
  fi
  table+=("$(printf '%-12s %-7s %9s inputs, %s' "$1" "$outcome" "$(stat_of number_of_executed_units "$log")" \
    "$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1) edges")")
}

stat_of() { sed -n "s/^stat::$1: *//p" "$2"; }

for parser in "${parsers[@]}"; do
  say "$parser, $seconds s"
  run_fuzzer "$parser"
done
printf '%s\n' "${table[@]}"
exit "$failed"
