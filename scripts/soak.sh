#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains on 2 ranks for many steps and watches their memory: it must stay below 200 MB a rank, and must not grow.
#
# Usage: scripts/soak.sh [--preset P] [--steps N] [TRAIN-OPTION...]
#
# Builds the program in build/P (default: cpu-only) and trains MNIST where GRADRING_DATA_DIR or ../shared/data has it, else
# the embedded digits, in batches of 256 for N steps (default: 15000). Prints the resident memory of every rank while it
# trains, and ends with an error if a rank exceeds 200 MB, or holds 2 MB more at the end than after a fifth of the steps.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=cpu-only
steps=15000
options=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --preset) preset=${2:?--preset needs a name}; shift 2 ;;
    --steps) steps=${2:?--steps needs a number}; shift 2 ;;
    *) options+=("$1"); shift ;;
  esac
done
most_kb=$((200 * 1000 * 1000 / 1024))
growth_kb=$((2 * 1000 * 1000 / 1024))

need_packages "${build_packages[@]}"
configure "$preset"
cmake --build --preset "$preset" --target gradring
data=${GRADRING_DATA_DIR:-../shared/data}/mnist
if [[ -d $data ]]; then options=(--dataset mnist --data-dir "$data" "${options[@]}"); fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
say "Training $steps steps on 2 ranks"
"build/$preset/gradring" launch --nproc-per-node 2 train --batch-size 256 --steps "$steps" --progress none \
  --run-dir "$folder/run" "${options[@]}" &
launcher=$!

# Resident kilobytes of one process.
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status" 2>/dev/null; }
steps_done() { if [[ -f $folder/run/metrics.jsonl ]]; then grep -c '"event":"train"' "$folder/run/metrics.jsonl"; else echo 0; fi; }

declare -A early=() late=() most=()
while kill -0 "$launcher" 2>/dev/null; do
  done_so_far=$(steps_done)
  for log in "$folder"/run/logs/rank_*.log; do
    [[ -f $log ]] || continue
    rank=$(basename "$log" .log)
    pid=$(sed -n 's/.*, process \([0-9]*\)[:,].*/\1/p' "$log" | head -n 1)
    kb=$(resident "${pid:-0}") || true
    [[ -n $kb ]] || continue
    if ((done_so_far >= steps / 5)) && [[ -z ${early[$rank]-} ]]; then early[$rank]=$kb; fi
    if ((done_so_far < steps)); then late[$rank]=$kb; fi
    if ((kb > ${most[$rank]:-0})); then most[$rank]=$kb; fi
  done
  sleep 0.5
done
wait "$launcher"

failed=0
((${#most[@]} == 2)) || die "saw ${#most[@]} ranks instead of 2: the run was too short to be watched; raise --steps"
for rank in "${!most[@]}"; do
  [[ -n ${early[$rank]-} ]] || die "saw no step of $rank after the first fifth: raise --steps"
  printf '%s: %d MB after a fifth of the steps, %d MB at the end, never above %d MB\n' "$rank" \
    $((early[$rank] * 1024 / 1000000)) $((late[$rank] * 1024 / 1000000)) $((most[$rank] * 1024 / 1000000))
  if ((most[$rank] > most_kb)); then echo "$rank: above 200 MB"; failed=1; fi
  if ((late[$rank] - early[$rank] > growth_kb)); then echo "$rank: grew by more than 2 MB"; failed=1; fi
done
exit "$failed"
