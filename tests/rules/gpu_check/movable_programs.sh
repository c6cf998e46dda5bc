#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test programs that gpu_check.sh --pack takes along name no file of the source tree or the build, but for the sources
# in messages: in another place it would not be there.
#
# Usage: movable_programs.sh SOURCE-TREE PROGRAM...
set -euo pipefail
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
failed=0
for program in "${@:2}"; do
  strip -o "$stripped" "$program"
  paths=$(grep -aoF "$1/" "$stripped" >/dev/null && grep -aoE "$1/[[:alnum:]_./+-]*" "$stripped" |
    grep -vE '\.(cpp|h|cu|cuh|cxx)$' | sort -u) || continue
  printf '%s names %s\n' "${program##*/}" "$paths"
  failed=1
done
exit $failed
