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
#   --freezes N     freezes of a launcher and all its ranks (SIGSTOP for twice --timeout, then SIGCONT) [30]
#   --file-operations N  faults at file operations of ranks and launcher: EIO, EINTR, ENOSPC (once, or from there on), half of a
#                   read or write, SIGKILL before or after it; "each": every operation with one of them, drawn; "all": with each
#                   of them [each]
#   --signals N     KILL, SEGV, STOP, TERM, INT, HUP, QUIT, USR1 or USR2 at start, rendezvous, step, save, evaluation, restart or
#                   end, to a rank, a launcher or an agent; "all": each once [all]
#   --jobs N        trainings at a time for the last two kinds [as many as cores]
#   --repeat CASE   one fault of these two kinds again and nothing else, as the message of its failure names it
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
#
# Each fault of --file-operations and --signals has a small training of its own, several at a time. It must end with 0 or with a
# documented code, and then, resumed, with 0: with the weights, losses and evaluations of the undisturbed training. Exit code 0
# needs a summary and the last checkpoint. What a user keeps beside a run and in TMPDIR, by names like ours, must not change. All
# faults are tried; those that failed are listed with what --repeat takes, and their folders are kept.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/fault_soak/runs.sh
source scripts/fault_soak/runs.sh
# shellcheck source=scripts/fault_soak/checks.sh
source scripts/fault_soak/checks.sh
# shellcheck source=scripts/fault_soak/faults.sh
source scripts/fault_soak/faults.sh
# shellcheck source=scripts/fault_soak/attack.sh
source scripts/fault_soak/attack.sh
# shellcheck source=scripts/fault_soak/files.sh
source scripts/fault_soak/files.sh
# shellcheck source=scripts/fault_soak/signals.sh
source scripts/fault_soak/signals.sh

gradring=build/release/gradring
workers=200 agents=50 launchers=50 terms=100 layouts=50 freezes=30 patience=1 steps=300 precision=fp32
file_operations=each signals=all jobs=$(nproc) repeat=""
seed=$SRANDOM
arguments=("$@")
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --precision)
      [[ ${2:-} == @(fp32|fp16|bf16) ]] || die "$1 needs fp32, fp16 or bf16"
      precision=$2
      shift 2
      ;;
    --workers | --agents | --launchers | --terms | --layouts | --freezes | --seed | --patience | --steps | --jobs)
      [[ ${2:-} =~ ^[0-9]+$ ]] || die "$1 needs a number"
      declare "${1#--}=$2"
      shift 2
      ;;
    --file-operations | --signals)
      [[ ${2:-} =~ ^([0-9]+|all|each)$ ]] || die "$1 needs a number, all or each"
      [[ $1 == --signals ]] && signals=$2 || file_operations=$2
      shift 2
      ;;
    --repeat)
      repeat=${2:?--repeat needs a case}
      shift 2
      ;;
    -*) die "there is no option $1; see --help" ;;
    *) gradring=$1; shift ;;
  esac
done
gradring=$(from_here "$gradring")
[[ -x $gradring ]] || die "$gradring is not there: build it, or name it"
library=$(dirname "$gradring")/tests/support/libgradring_file_faults.so
[[ $file_operations == 0 && $repeat != file* || -e $library ]] || die "$library is not there: build the tests"

# In a process namespace, where it may have one, this script is who reaps those whose launcher is gone, and sees nobody else.
if [[ -z ${SOAK_NAMESPACE:-} ]]; then
  for user in --kill-child --map-root-user; do
    unshare "$user" --pid --fork --mount-proc true 2>/dev/null || continue
    # shellcheck disable=SC2093  # goes on only where none of them works
    SOAK_NAMESPACE=1 exec unshare "$user" --kill-child --pid --fork --mount-proc "$script" "${arguments[@]}" --seed "$seed" "$gradring"
  done
  echo "no process namespace here: zombies are not looked for, for process 1 reaps them when it likes"
fi
trap 'exit 130' INT
trap 'exit 143' TERM

folder=$(mktemp -d /tmp/gradring-soak-XXXXXX) # short: sockets lie in it
soak=$folder
if [[ -e $library ]]; then
  ln -s "$library" "$soak/file_faults.so"
  library=$soak/file_faults.so # LD_PRELOAD takes no path with a space
fi
trap 'for pid in $(processes_left); do kill -9 "$pid" 2>/dev/null || true; done' EXIT
# What is drawn follows from the seed; when it comes to pass, from the machine, too.
RANDOM=$((seed % 32768))
remember_what_was_there
echo "seed $seed; $steps steps a training in $precision; $(nproc) cores; commit $(git describe --always --dirty 2>/dev/null || echo unknown)"

if [[ -n $repeat ]]; then
  "prepare_${repeat%% *}s"
  echo "$repeat" >"$soak/cases"
  attack_all again "$soak/cases" "finished, or resumed to the same weights and figures"
  [[ ! -s $soak/failures ]] || die "seed $seed; its folders are kept in $folder"
  rm -rf "$folder"
  exit
fi

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
freeze_all "$freezes"
attack_files "$file_operations"
attack_signals "$signals"
[[ ! -s $soak/all_failures ]] || die "$(wc -l <"$soak/all_failures") cases failed; seed $seed, their folders are kept in $folder; one again: --repeat CASE"
echo
echo "every run ended, or was resumed to its end, with 0 and the weights of the undisturbed one; nothing was left within $patience s; $(elapsed)"
rm -rf "$folder"
