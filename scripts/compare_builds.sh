#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the speed of two builds of the program: this one and another, or two that are given.
#
# Usage: scripts/compare_builds.sh [--pairs N] [--epochs N] [--only train,allreduce,step,kernels] (native | COMMIT | PROGRAM PROGRAM)
#
# native: the portable build of this tree (build/for_portable) and the one for this processor (build/for_native,
# GRADRING_ARCH=native). COMMIT: the portable build of this tree and that of a commit (build/for_COMMIT). Two PROGRAMs are run
# as they are. They take turns, N pairs (default: 15):
#   train      training time on 2 CPU ranks with batches of 256: MNIST where GRADRING_DATA_DIR or ../shared/data has it, else digits
#   allreduce  `bench allreduce` at three sizes, the median time of each
#   step       `bench step` of one rank and of two, the median time of a step
#   kernels    `bench kernels`, the median time of each variant that a CPU chooses; then their geometric mean
# Prints for each the median of the ratios first / second and an interval that holds the median with a probability of at least
# 95 % (order statistics, no distribution assumed).

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pairs=15
epochs=1
only=train,allreduce,step,kernels
programs=()
built=  # of which commit, where they are built here
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --pairs) pairs=${2:?--pairs needs a number}; shift 2 ;;
    --epochs) epochs=${2:?--epochs needs a number}; shift 2 ;;
    --only) only=${2:?--only needs a list}; shift 2 ;;
    -*) die "unknown argument '$1'" ;;
    *) programs+=("$1"); shift ;;
  esac
done
((${#programs[@]} == 1 || ${#programs[@]} == 2)) || die "give native, a commit, or two programs"
[[ $only =~ ^(train|allreduce|step|kernels)(,(train|allreduce|step|kernels))*$ ]] ||
  die "--only is '$only', expected words of train,allreduce,step,kernels"
((pairs >= 6)) || die "--pairs is $pairs: an interval of 95 % needs at least 6"

# build NAME SOURCE ARCH: builds build/for_NAME/gradring from a source tree.
build() {
  cmake -S "$2" -B "build/for_$1" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DGRADRING_ARCH=$3" -DGRADRING_TESTS=OFF -DGRADRING_CUDA=OFF
  cmake --build "build/for_$1" --target gradring
}

if ((${#programs[@]} == 1)); then
  need_packages "${build_packages[@]}"
  other=${programs[0]}
  build portable . portable
  if [[ $other == native ]]; then
    build native . native
  else
    other=$(git rev-parse --short=8 "$other^{commit}") || die "$other is neither native nor a commit"
    [[ -d build/tree_$other ]] || git worktree add --detach "build/tree_$other" "$other"
    build "$other" "build/tree_$other" portable
  fi
  programs=(build/for_portable/gradring "build/for_$other/gradring")
  built=", commit $(git describe --always --dirty --abbrev=8 --exclude='*' 2>/dev/null || echo unknown)"
else
  programs=("$(from_here "${programs[0]}")" "$(from_here "${programs[1]}")")
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

# step_microseconds PROGRAM: the median step, a line a number of ranks.
step_microseconds() {
  local ranks
  for ranks in 1 2; do
    "$1" bench step "${dataset[@]}" --steps 40 --nprocs "$ranks" >"$folder/steps" || return
    awk '/^whole step/ { print $4 }' "$folder/steps"
  done
}

# kernels_microseconds PROGRAM: the geometric mean of the medians, and these, of each variant that takes a microsecond or more;
# their names go to $folder/kernels.
kernels_microseconds() {
  "$1" bench kernels --no-peers --seconds 0.02 >"$folder/table" || return
  awk -v names="$folder/kernels" '
    /^[a-z]/ { operation = $0; sub(/,.*/, "", operation); sub(/ \[.*/, "", operation) }
    /^  [a-z]/ && !/^  plain loop/ && $3 ~ /^[0-9]/ && $3 >= 1 { n++; sum += log($3); time[n] = $3; name[n] = operation " " $1 }
    END {
      print exp(sum / n); print "kernels, geometric mean" >names
      for (i = 1; i <= n; i++) { print time[i]; print name[i] >names }
    }' "$folder/table"
}

# all_reduce_microseconds PROGRAM: a line a size.
all_reduce_microseconds() {
  rm -f "$folder/all_reduce.json"
  "$1" bench allreduce --sizes "$sizes" -n 200 -w 20 -c 0 -J "$folder/all_reduce.json" >&2 || return
  sed -n 's/.*"median": *\([0-9.e+-]*\).*/\1/p' "$folder/all_reduce.json"
}

# measure NAME FUNCTION: pairs in turns, the first of each alternating; lines "first second" in NAME.<row>.
measure() {
  local pair which row first second
  for ((pair = 1; pair <= pairs; pair++)); do
    for which in $((pair % 2)) $((1 - pair % 2)); do
      "$2" "${programs[which]}" >"$folder/$which" 2>"$folder/log" || { cat "$folder/log" >&2; die "${programs[which]} failed"; }
    done
    [[ -s $folder/0 && $(wc -l <"$folder/0") == $(wc -l <"$folder/1") ]] || die "the programs did not report the same times"
    row=0
    while read -r first second; do
      echo "$first $second" >>"$folder/$1.$row"
      row=$((row + 1))
    done < <(paste -d ' ' "$folder/0" "$folder/1")
    say "$1, pair $pair of $pairs: $(head -n 3 "$folder/0" | paste -sd ' ') | $(head -n 3 "$folder/1" | paste -sd ' ')"
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
      printf "%-44s %5d %9.3f   %.3f to %.3f\n", title, NR, median, ratio[k], ratio[NR + 1 - k]
    }'
}

says() { [[ ,$only, == *,$1,* ]]; }
if says train; then measure training training_seconds; fi
if says allreduce; then measure all_reduce all_reduce_microseconds; fi
if says step; then measure step step_microseconds; fi
if says kernels; then measure kernels kernels_microseconds; fi

say "First / second: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(date +%F)$built"
for program in "${programs[@]}"; do
  echo "$("$program" version 2>/dev/null || "$program" --version), $("$program" doctor | sed -n 's/^ *CPU level */CPU level /p')"
done
printf '%-44s %5s %9s   %s\n' "time of" pairs median "95 % interval"
if says train; then report "${dataset[1]}, 2 ranks x 256, $epochs epoch" "$folder/training.0"; fi
row=0
if says allreduce; then
  for size in ${sizes//,/ }; do
    report "all-reduce, 2 ranks, $size" "$folder/all_reduce.$row"
    row=$((row + 1))
  done
fi
if says step; then
  report "a step of one rank, batch 256" "$folder/step.0"
  report "a step of two ranks, batch 256 each" "$folder/step.1"
fi
row=0
if says kernels; then
  while read -r name; do
    report "$name" "$folder/kernels.$row"
    row=$((row + 1))
  done <"$folder/kernels"
fi
