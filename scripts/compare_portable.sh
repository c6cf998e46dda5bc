#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what the portable build costs beside one compiled for this processor (-DGRADRING_ARCH=native).
#
# Usage: scripts/compare_portable.sh [--pairs N] [--epochs N] [PORTABLE NATIVE]
#
# Builds both programs (build/for_portable, build/for_native) unless they are given, and runs them in turns, N pairs (default: 15):
# MNIST on 2 CPU ranks with batches of 256, its training time, where GRADRING_DATA_DIR or ../shared/data has MNIST, else digits;
# and `bench allreduce` at three sizes, the median time of each. Prints for each the median of the ratios portable / native
# and an interval that holds the median with a probability of at least 95 % (order statistics, no distribution assumed).

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pairs=15
epochs=1
programs=()
built=  # of which commit, where they are built here
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --pairs) pairs=${2:?--pairs needs a number}; shift 2 ;;
    --epochs) epochs=${2:?--epochs needs a number}; shift 2 ;;
    -*) die "unknown argument '$1'" ;;
    *) programs+=("$(from_here "$1")"); shift ;;
  esac
done
((${#programs[@]} == 0 || ${#programs[@]} == 2)) || die "give both programs, PORTABLE and NATIVE, or none"
((pairs >= 6)) || die "--pairs is $pairs: an interval of 95 % needs at least 6"

if ((${#programs[@]} == 0)); then
  need_packages "${build_packages[@]}"
  for arch in portable native; do
    cmake -S . -B "build/for_$arch" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGRADRING_ARCH=$arch -DGRADRING_TESTS=OFF -DGRADRING_CUDA=OFF
    cmake --build "build/for_$arch" --target gradring
    programs+=("build/for_$arch/gradring")
  done
  built=", commit $(git describe --always --dirty --abbrev=8 --exclude='*' 2>/dev/null || echo unknown)"
fi
data=${GRADRING_DATA_DIR:-../shared/data}/mnist
dataset=(--dataset digits)
if [[ -d $data ]]; then dataset=(--dataset mnist --data-dir "$data"); fi
sizes=64K,1724968,32M

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# training_seconds PROGRAM: of one run.
training_seconds() {
  rm -rf "$folder/run"
  "$1" launch --nproc-per-node 2 train "${dataset[@]}" --device cpu --batch-size 256 --epochs "$epochs" --progress none \
    --run-dir "$folder/run" >&2 || return
  sed -n 's/.*"seconds": *\([0-9.e+-]*\).*/\1/p' "$folder/run/summary.json"
}

# all_reduce_microseconds PROGRAM: a line a size.
all_reduce_microseconds() {
  rm -f "$folder/all_reduce.json"
  "$1" bench allreduce --sizes "$sizes" -n 200 -w 20 -c 0 -J "$folder/all_reduce.json" >&2 || return
  sed -n 's/.*"median": *\([0-9.e+-]*\).*/\1/p' "$folder/all_reduce.json"
}

# measure NAME FUNCTION ROWS: pairs in turns, the first of each alternating; lines "portable native" in NAME.<row>.
measure() {
  local pair which row
  for ((pair = 1; pair <= pairs; pair++)); do
    for which in $((pair % 2)) $((1 - pair % 2)); do
      "$2" "${programs[which]}" >"$folder/$which" 2>"$folder/log" || { cat "$folder/log" >&2; die "${programs[which]} failed"; }
      [[ $(wc -l <"$folder/$which") == "$3" ]] || die "${programs[which]} did not report its $3 times"
    done
    row=0
    while read -r portable native; do
      echo "$portable $native" >>"$folder/$1.$row"
      row=$((row + 1))
    done < <(paste -d ' ' "$folder/0" "$folder/1")
    say "$1, pair $pair of $pairs: $(paste -sd ' ' "$folder/0") | $(paste -sd ' ' "$folder/1")"
  done
}

# report TITLE FILE: median of the ratios, and the narrowest interval between order statistics that covers 95 %.
report() {
  awk '{ print $1 / $2 }' "$2" | sort -g | awk -v title="$1" '
    { ratio[NR] = $1 }
    END {
      median = NR % 2 ? ratio[(NR + 1) / 2] : (ratio[NR / 2] + ratio[NR / 2 + 1]) / 2
      # P(the median lies below the k-th smallest) = P(Binomial(NR, 1/2) < k): the largest k with at most 2.5 % on each side.
      term = 0.5 ^ NR; below = 0; k = 0
      while (below + term <= 0.025) { below += term; term *= (NR - k) / (k + 1); k++ }
      printf "%-34s %5d %9.3f   %.3f to %.3f\n", title, NR, median, ratio[k], ratio[NR + 1 - k]
    }'
}

measure training training_seconds 1
measure all_reduce all_reduce_microseconds 3
say "Portable / native: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(date +%F)$built"
"${programs[0]}" doctor | sed -n 's/^ *CPU level */portable: CPU level /p'
"${programs[1]}" doctor | sed -n 's/^ *CPU level */native: CPU level /p'
printf '%-34s %5s %9s   %s\n' "time of" pairs median "95 % interval"
report "${dataset[1]}, 2 ranks x 256, $epochs epoch" "$folder/training.0"
row=0
for size in ${sizes//,/ }; do
  report "all-reduce, 2 ranks, $size" "$folder/all_reduce.$row"
  row=$((row + 1))
done
