#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the commands and options of gradring that documents name are in its help.
#
# Usage: documented_commands.sh PROGRAM REPOSITORY
#
# Looks at lines of code blocks and at `inline code` that begin with gradring or gradrun in every Markdown file.
set -euo pipefail
program=$1
cd "$2"

# One command a line: "FILE: gradring ...", continuation lines joined, comments, pipes and redirections cut off.
commands() {
  # shellcheck disable=SC2016  # awk's own $0
  find . -name '*.md' -not -path './build*' -not -path './.*' -print0 | xargs -0 awk '
    function found(text) {
      sub(/^\$ /, "", text)
      sub(/^(\.\/|build\/[a-z]+\/)/, "", text)
      sub(/ +#.*/, "", text); sub(/ [|>&].*/, "", text)
      if (text ~ /^grad(ring|run) [a-z-]/) print FILENAME ": " text
    }
    FNR == 1 { block = 0; joined = "" }
    /^ *```/ { block = !block; next }
    block {
      if (/\\$/) { joined = joined substr($0, 1, length($0) - 1) " "; next }
      found(joined $0); joined = ""; next
    }
    { parts = split($0, piece, "`"); for (i = 2; i <= parts; i += 2) found(piece[i]) }'
}

declare -A helps
# help_of COMMAND...: sets `help`.
help_of() {
  if [[ -z ${helps[$*]-} ]]; then helps[$*]=$("$program" "$@" --help 2>/dev/null || true); fi
  help=${helps[$*]}
}

failed=0
count=0
while IFS= read -r line; do
  file=${line%%: *} text=${line#*: }
  read -ra words <<<"${text#* }"
  command=(launch)
  if [[ $text == gradring* ]]; then command=("${words[0]}"); fi
  [[ ${command[0]} =~ ^[a-z]+$ ]] || continue  # COMMAND, a placeholder
  case ${command[0]} in
    bench | ckpt | data | runs | trace) if [[ ${words[1]-} =~ ^[a-z]+$ ]]; then command+=("${words[1]}"); fi ;;
    help | version | completions) continue ;;
  esac
  help_of "${command[@]}"
  [[ $help ]] || { echo "$file: gradring ${command[*]} is no command: $text" >&2; failed=1; continue; }
  for word in "${words[@]:1}"; do
    if [[ ${command[0]} == launch && $word == train ]]; then command=(train) && help_of train; continue; fi
    if [[ ${command[0]} == launch && $word == @(*python*|*.py) ]]; then break; fi  # options of another program
    [[ $word =~ ^(--[a-z][a-z0-9-]*) ]] || continue
    option=${BASH_REMATCH[1]}
    count=$((count + 1))
    grep -qE -- "(^|[ ,/|])$option([ ,=[]|$)" <<<"$help" || {
      echo "$file: gradring ${command[*]} has no option $option: $text" >&2
      failed=1
    }
  done
done < <(commands)
echo "$count options in documents"
((count > 50)) || { echo "expected more than 50 options: does the search work?" >&2; failed=1; }
exit "$failed"
