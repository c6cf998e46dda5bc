#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks layout (clang-format), C++ (clang-tidy, 16 or later) and the scripts (shellcheck, where it is installed).
#
# Usage: scripts/lint.sh [--fix] [FILE...]
#
# Without files: the whole tree, which takes minutes. --fix writes the layout that clang-format wants.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# newest TOOL: its newest version from 16 on that is installed, or nothing.
newest() {
  local version
  for version in 22 21 20 19 18 17 16; do
    if command -v "$1-$version"; then return; fi
  done
}

fix=0
files=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --fix) fix=1 ;;
    -*) die "unknown option '$1'" ;;
    *) files+=("$(realpath --relative-to=. "$(from_here "$1")")") ;;
  esac
  shift
done
((${#files[@]})) || mapfile -t files < <(git ls-files)

# The layout of 16 is the one that counts: later versions differ in details.
command -v clang-format-16 >/dev/null || need_packages clang-format-16
[[ -n $(newest clang-tidy) ]] || need_packages clang-tidy-16
need_packages "${build_packages[@]}" "${test_packages[@]}"
clang_tidy=$(newest clang-tidy)
need_packages "libomp-${clang_tidy##*-}-dev" # omp.h, which comes apart from clang

matching() { printf '%s\n' "${files[@]}" | grep -E "$1" || true; }
failed=0

mapfile -t sources < <(matching '\.(h|cpp|cu|cuh)$')
if ((${#sources[@]})); then
  say "clang-format: ${#sources[@]} files"
  if ((fix)); then clang-format-16 -i "${sources[@]}"; fi
  clang-format-16 --dry-run -Werror "${sources[@]}" || failed=1
fi

mapfile -t scripts < <(matching '(\.sh|^\.ci/run)$')
if ((${#scripts[@]})); then
  say "bash -n, shellcheck: ${#scripts[@]} scripts"
  for file in "${scripts[@]}"; do bash -n "$file" || failed=1; done
  if command -v shellcheck >/dev/null; then shellcheck -x "${scripts[@]}" || failed=1; fi
fi

# Headers are read with the sources that include them.
mapfile -t units < <(matching '\.(cpp|cu)$')
if ((${#units[@]})); then
  cmake --preset lint >/dev/null  # always: a new file is to be in compile_commands.json
  compiled=()
  for file in "${units[@]}"; do
    # A source that another configuration compiles (no_onednn.cpp, the CUDA module's door) has no flags to be read with.
    if grep -qF "\"file\": \"$PWD/$file\"" build/lint/compile_commands.json; then compiled+=("$file"); fi
  done
  say "$(basename "$clang_tidy"): ${#compiled[@]} of ${#units[@]} sources; the others are not part of this configuration"
  printf '%s\0' "${compiled[@]}" | xargs -0 -r -n 1 -P "$(nproc)" "$clang_tidy" -p build/lint --quiet 2>/dev/null ||
    failed=1
fi
((failed == 0)) && say "Clean"
exit "$failed"
