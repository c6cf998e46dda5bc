#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that bad model files are rejected: check.sh GRADRING [FOLDER]. README.md describes the files.
set -euo pipefail

gradring=$(realpath "$1")
folder=$(realpath "${2:-$(dirname "$0")}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shopt -s nullglob dotglob
paths=("$folder"/*.toml)
jobs=4

# check FILE EXPECTED COMMAND...: in a folder that has nothing but FILE
check() {
  local file=$1 expected=$2 code=0 message rest left out=$work/$BASHPID
  shift 2
  message=$("$gradring" "$@" 2>&1 >"$out") || code=$?
  rest=${message#*"$expected"}
  left=(*)
  if [[ $code != 2 ]]; then
    echo "$file: $*: exit code $code, expected 2"
  elif [[ $rest == "$message" || $rest == *"$expected"* ]]; then
    echo "$file: $*: expected once '$expected', found: $message"
  elif [[ $message == *$'\n'* || ${#message} -gt 1500 ]]; then
    echo "$file: $*: expected a line of at most 1500 characters, found: $message"
  elif [[ -s $out || ${left[*]} != "$file" ]]; then
    echo "$file: $*: wrote ${left[*]} and $(wc -c <"$out") bytes of output"
  else
    return 0
  fi
  return 1
}

# check_part PART: every jobs-th file
check_part() {
  local i file first expected failed=0
  mkdir "$work/part$1" && cd "$work/part$1"
  for ((i = $1; i < ${#paths[@]}; i += jobs)); do
    file=${paths[i]##*/}
    IFS= read -r first <"${paths[i]}"
    [[ $first =~ ^'# error '([0-9]+': '.+)$ ]] || { echo "$file:1: expected '# error LINE: TEXT'" && failed=1 && continue; }
    expected=$file:${BASH_REMATCH[1]}
    cp "${paths[i]}" "$file"
    check "$file" "$expected" model show "$file" --dataset digits || failed=1
    check "$file" "$expected" train --model "$file" --dataset digits --dry-run || failed=1
    rm "$file"
  done
  return "$failed"
}

parts=()
for ((part = 0; part < jobs; ++part)); do
  check_part "$part" &
  parts+=($!)
done
failed=0
for part in "${parts[@]}"; do wait "$part" || failed=$((failed + 1)); done
echo "${#paths[@]} bad model files, failures in $failed of $jobs parts"
[[ $failed == 0 && ${#paths[@]} -gt 0 ]]
