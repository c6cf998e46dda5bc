#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the tests that a document names exist.
#
# Usage: documented_tests.sh DOCUMENT BUILD-DIRECTORY
set -euo pipefail
tests=$(ctest --test-dir "$2" -N | sed -n 's/^ *Test *#[0-9]*: //p')
# `Suite.Name`, where .* stands for all tests of a suite; `fuzz_parser`; `rules.name`.
# shellcheck disable=SC2016  # backquotes of Markdown
mapfile -t names < <(grep -oE '`[A-Z][A-Za-z0-9_/]*\.[A-Za-z0-9_*]+`|`(fuzz_[a-z]+|(rules|nodes)\.[a-z_0-9]+)`' "$1" | tr -d '`' | sort -u)
((${#names[@]} > 0)) || { echo "$1 names no tests" >&2; exit 1; }
failed=0
for name in "${names[@]}"; do
  pattern=${name//./\\.}
  grep -qE "(^|[./])${pattern//\\.\*/\\.}" <<<"$tests" || { echo "$1: there is no test $name" >&2; failed=1; }
done
echo "${#names[@]} names of tests"
exit "$failed"
