#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The linker's view of libraries, given from the ground up: no function or variable is defined in two of them, and none uses
# what only a later one defines. A program that links all of them would not notice.
#
# Usage: rooms_link.sh ARCHIVE...

set -euo pipefail

symbols() {  # of every archive: its place, its name, the kind of symbol, the symbol
  local place=0
  for archive in "$@"; do
    place=$((place + 1))
    nm "$archive" | awk -v place=$place -v name="$(basename "$archive")" 'NF >= 2 { print place, name, $(NF-1), $NF }'
  done
}

# T, D, B and R are strong: others are inline functions and templates, which each user has, or not visible.
problems=$(symbols "$@" | awk '
  { name[$1] = $2 }
  $3 ~ /^[TDBR]$/ && $4 in owner { print $4, "is defined in", name[owner[$4]], "and in", $2 }
  $3 ~ /^[TDBR]$/ { owner[$4] = $1 }
  $3 == "U" { user[$1 " " $4] = 1 }
  END {
    for (each in user) {
      split(each, use, " ")
      if (use[2] in owner && owner[use[2]] > use[1])
        print use[2], "is used in", name[use[1]], "and defined in", name[owner[use[2]]]
    }
  }' | sort | c++filt)
if [[ -n $problems ]]; then
  echo "$problems" >&2
  exit 1
fi
echo "$# libraries"
