#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the four walks of docs/architecture.md with the calls of a real training on two ranks.
#
# Usage: scripts/trace_walks.sh
#
# Builds the program in build/trace with -finstrument-functions (device code aside), trains on digits, once undisturbed and once
# with --inject, and records every call of the launcher and of the ranks. Then prints, for each walk, its files with the moment at
# which each was called after the one before it, and the files that were called in between and that the walk leaves out. A header
# and its source count as one. A header of declarations needs a file in the trace that includes it. Fails if a listed file was
# not called, or not in that place.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ ${1-} == -h || ${1-} == --help ]]; then usage; exit; fi
configure trace
say "Building build/trace"
ninja -C build/trace gradring
program=build/trace/gradring
folder=$(mktemp -d /tmp/gradring-trace-XXXXXX) # short: LD_PRELOAD takes no path with a space
trap 'rm -rf "$folder"' EXIT
"${CXX:-g++}" -std=c++20 -O1 -shared -fPIC tests/support/record_calls.cpp -o "$folder/record.so"

# record NAME EXIT-CODE OPTION...: a training whose calls become lines "nanoseconds process thread file" in $folder/NAME.calls, in
# order of time; files without extension, calls of a thread in one file in a row as one.
record() {
  local name=$1 expected=$2 status=0 calls
  shift 2
  say "Recording: gradring train $*"
  mkdir "$folder/$name"
  RECORDED_CALLS=$folder/$name LD_PRELOAD=$folder/record.so "$program" train "$@" --run-dir "$folder/$name.run" \
    >"$folder/$name.log" 2>&1 || status=$?
  ((status == expected)) || { cat "$folder/$name.log"; die "the training ended with $status, expected $expected"; }
  for calls in "$folder/$name"/*; do
    od -An -v -t u8 -w24 -j24 -N $((24 * $(od -An -t u8 -N8 "$calls"))) "$calls" |
      awk -v process="${calls##*/}" '{ printf "%s %s %s %x\n", $1, process, $2, $3 }'
  done | sort -n >"$folder/addresses"
  awk '!seen[$4]++ { print $4 }' "$folder/addresses" >"$folder/functions"
  addr2line -e "$program" <"$folder/functions" | sed -E ":up; s#/[^/.]+/[.][.]/#/#; t up; s#^$PWD/##; s#:.*##; s#[.][a-z]+\$##" >"$folder/files"
  paste -d' ' "$folder/functions" "$folder/files" |
    awk 'NR == FNR { file[$1] = $2; next }
      file[$4] ~ /^(kernels|nn|comm|data|train)\// && last[$3] != file[$4] { print $1, $2, $3, last[$3] = file[$4] }' - \
      "$folder/addresses" >"$folder/$name.calls"
}

# walk TITLE: the files that docs/architecture.md lists below the title.
walk() { sed -n "/^\*\*$1,/,/^\*\*.*files)\|^## /s/^[0-9]*\. \([a-z0-9_/]*[.][a-z]*\).*/\1/p" docs/architecture.md; }

# rank NAME: the calls of one rank, that of the process that trained and has the lowest number.
rank() {
  local process
  process=$(awk '$4 == "train/core/trainer/trainer" { print $2 }' "$folder/$1.calls" | sort -nu | head -n 1)
  awk -v process="$process" '$2 == process' "$folder/$1.calls"
}

# compare TITLE <CALLS: prints the walk as the calls show it. Fails where they do not.
compare() {
  say "$1, $(walk "$1" | wc -l) files"
  cat >"$folder/calls"
  walk "$1" | while read -r path; do
    stem=${path%.*}
    # A header without source or calls: who includes it was called.
    [[ -e $stem.cpp ]] || grep -qE " $stem\$" "$folder/calls" ||
      stem="$stem $(grep -lF "#include \"$stem.h\"" -r kernels nn comm data train | sed 's/[.][a-z]*$//' |
        grep -Fxf - <(cut -d' ' -f4 "$folder/calls") | head -n 1)"
    echo "$stem"
  done | awk '
    NR == FNR { stem[++listed] = $1; includer[listed] = $2; is_listed[$1] = 1; next }
    { moment[++calls] = $1; file[calls] = $4; was_called[$4] = 1 }
    END {
      for (k = 1; k <= listed; ++k) {  # the first end of the walk ...
        for (i = at + 1; i <= calls && file[i] != stem[k]; ++i) {}
        if (i <= calls) place[k] = at = i
      }
      end = at++
      for (k = listed; k >= 1; --k) {  # ... and the last beginning before it
        if (!place[k]) continue
        for (i = at - 1; file[i] != stem[k]; --i) {}
        place[k] = begin = at = i
      }
      for (k = 1; k <= listed; ++k) {
        if (place[k]) note = sprintf("%.3f ms", (moment[place[k]] - moment[begin]) / 1e6)
        else if (includer[k]) note = "declarations; included by " includer[k]
        else { note = was_called[stem[k]] ? "NOT CALLED IN THIS PLACE" : "NOT CALLED"; failed = 1 }
        printf "%3d  %-46s %s\n", k, stem[k], note
      }
      printf "also:"
      for (i = begin; i <= end; ++i) if (!is_listed[file[i]]++) printf " %s", file[i]
      print ""
      exit failed
    }' - "$folder/calls"
}

options=(--dataset digits --nprocs 2 --batch-size 16 --conv direct --gemm strips --allreduce ring --clip-norm 1 --progress plain)
record training 0 "${options[@]}" --steps 2
record fault 137 "${options[@]}" --steps 2 --inject kill:rank=1,step=2
status=0
rank training | compare "A batch" || status=1
rank training | compare "A gradient" || status=1
rank training | compare "A rank's environment" || status=1
compare "A fault" <"$folder/fault.calls" || status=1
exit "$status"
