#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that all tests that need a GPU run on a simulated one, but for those that a document names.
#
# Usage: simulated_tests.sh DOCUMENT TEST...
#
# Runs the test programs with GRADRING_TEST_GPU=h100. What they skip must be a row of the document, `Suite.Name` in its first
# column, and each of these rows must be skipped.
set -euo pipefail
document=$1
shift
# shellcheck disable=SC2016  # backquotes of Markdown
expected=$(grep -oE '^\| `[A-Z][A-Za-z0-9_/]*\.[A-Za-z0-9_/]+`' "$document" | tr -d '|` ' | sort -u)
found=$(for program in "$@"; do
  GRADRING_TEST_GPU=h100 "$program" --gtest_color=no || echo "failed: $program" >&2
done | sed -n 's/^\[  SKIPPED \] \([^ ]*\)$/\1/p' | sort -u)
different=$(diff <(echo "$expected") <(echo "$found") || true)
[[ -z $different ]] || {
  echo "$document (<) names other tests than a simulated GPU skips (>):" >&2
  grep '^[<>]' <<<"$different" >&2
  exit 1
}
echo "$(wc -l <<<"$found") tests are skipped, as $document says"
