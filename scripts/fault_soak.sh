#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills, and asks to stop, trainings at random moments, many times, and sees that all of them come to the same weights.
#
# Usage: scripts/fault_soak.sh [OPTION...] [GRADRING]
#
#   --workers N     workers killed (SIGKILL) under a launcher with restarts [200]
#   --agents N      agents of two-node runs killed, the leading one or the other [50]
#   --launchers N   launchers killed; the run is started again [50]
#   --terms N       SIGTERMs to the launcher; the run is started again [100]
#   --layouts N     launchers killed; the run is started again by another number of ranks, stage of ZeRO and recomputation [50]
#   --seed S        of the moments and the victims [drawn]
#   --patience S    seconds until nothing may be left of what has ended [1]
#   --steps N       steps of each training [300]
#   --precision P   of each training: fp32, fp16, bf16 [fp32]
#
# GRADRING is the program that was built (default: build/release/gradring). Each run is a small training by --reproducible,
# begun anew or gone on with by --resume auto after each fault, and must end with 0 and the weights of the undisturbed run. After
# each end nothing may be left: no process, no zombie, no folder of a run, no shared memory, no socket. Who survived a killed
# rank must name it. After SIGTERM all ranks have stopped behind one step, and its checkpoint is sound. Prints a table; at the
# first thing that is otherwise, says what, with the seed, keeps the run's folder, and ends with an error.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/fault_soak/runs.sh
source scripts/fault_soak/runs.sh
# shellcheck source=scripts/fault_soak/checks.sh
source scripts/fault_soak/checks.sh
# shellcheck source=scripts/fault_soak/faults.sh
source scripts/fault_soak/faults.sh

gradring=build/release/gradring
workers=200 agents=50 launchers=50 terms=100 layouts=50 patience=1 steps=300 precision=fp32
seed=$SRANDOM
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --precision)
      [[ ${2:-} == @(fp32|fp16|bf16) ]] || die "$1 needs fp32, fp16 or bf16"
      precision=$2
      shift 2
      ;;
    --workers | --agents | --launchers | --terms | --layouts | --seed | --patience | --steps)
      [[ ${2:-} =~ ^[0-9]+$ ]] || die "$1 needs a number"
      declare "${1#--}=$2"
      shift 2
      ;;
    -*) die "there is no option $1; see --help" ;;
    *) gradring=$1; shift ;;
  esac
done
gradring=$(from_here "$gradring")
[[ -x $gradring ]] || die "$gradring is not there: build it, or name it"

# In a process namespace, where it may have one, this script is who reaps those whose launcher is gone, and sees nobody else.
if [[ -z ${SOAK_NAMESPACE:-} ]]; then
  for user in --kill-child --map-root-user; do
    unshare "$user" --pid --fork --mount-proc true 2>/dev/null || continue
    # shellcheck disable=SC2093  # goes on only where none of them works
    SOAK_NAMESPACE=1 exec unshare "$user" --kill-child --pid --fork --mount-proc "$script" --workers "$workers" \
      --agents "$agents" --launchers "$launchers" --terms "$terms" --layouts "$layouts" --seed "$seed" --patience "$patience" \
      --steps "$steps" --precision "$precision" "$gradring"
  done
  echo "no process namespace here: zombies are not looked for, for process 1 reaps them when it likes"
fi
trap 'exit 130' INT
trap 'exit 143' TERM

folder=$(mktemp -d /tmp/gradring-soak-XXXXXX) # short: sockets lie in it
trap 'for pid in $(processes_left); do kill -9 "$pid" 2>/dev/null || true; done' EXIT
# What is drawn follows from the seed; when it comes to pass, from the machine, too.
RANDOM=$((seed % 32768))
remember_what_was_there
echo "seed $seed; $steps steps a training in $precision; $(nproc) cores; commit $(git describe --always --dirty 2>/dev/null || echo unknown)"

make_run undisturbed
launch 0
expect 0
expected=$(weights)
[[ -n $expected ]] || fail "the undisturbed run has no weights"
expect_nothing_left
echo "undisturbed: weights ${expected:0:16}"

printf '\n%-10s %7s %6s %8s %9s  %s\n' faults count runs seconds messages "what they came to"
kill_workers "$workers"
kill_agents "$agents"
kill_launchers "$launchers" launchers launch "nothing was left of them; the run went on"
ask_to_stop "$terms"
kill_launchers "$layouts" layouts launch_another_way "the run went on by other ranks, ZeRO and recomputation"
echo
echo "every run ended with 0 and the weights of the undisturbed one; nothing was left within $patience s; $(elapsed)"
rm -rf "$folder"
