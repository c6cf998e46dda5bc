#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that bad model files are rejected: check.sh GRADRING [FOLDER]. README.md describes the files.
set -euo pipefail

gradring=$(realpath "$1")
folder=$(realpath "${2:-$(dirname "$0")}")
work=$(mktemp -d)
failed=0
files=0

# fail FILE COMMAND REASON
fail() {
  echo "$1: $2: $3"
  failed=$((failed + 1))
}

# check FILE COMMAND...
check() {
  local file=$1 code=0 expected
  shift
  expected="$file:$(sed -n '1s/^# error \([0-9]*: .*\)$/\1/p' "$work/$file")"
  [[ $expected == "$file:" ]] && fail "$file" "line 1" "expected '# error LINE: text'" && return
  (cd "$work" && "$gradring" "$@" >"$work.out" 2>"$work.err") || code=$?
  [[ $code == 2 ]] || fail "$file" "$*" "exit code $code, expected 2"
  [[ $(grep -cF -- "$expected" "$work.err") == 1 ]] || fail "$file" "$*" "expected '$expected', found: $(cat "$work.err")"
  [[ $(ls "$work") == "$file" ]] || fail "$file" "$*" "wrote $(ls "$work")"
}

trap 'rm -rf "$work" "$work.out" "$work.err"' EXIT
for path in "$folder"/*.toml; do
  file=$(basename "$path")
  cp "$path" "$work/$file"
  check "$file" model show "$file" --dataset digits
  check "$file" train --model "$file" --dataset digits --dry-run
  rm "$work/$file"
  files=$((files + 1))
done
echo "$files bad model files, $failed failed checks"
[[ $failed == 0 && $files -gt 0 ]]
