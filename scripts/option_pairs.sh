#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Draws trainings with random options of many kinds, and checks what the documents promise of each.
#
# Usage: scripts/option_pairs.sh [OPTION...] [GRADRING]
#
#   --seed S        of the draws [drawn]
#   --minutes M     time after which no training is drawn any more [10]
#   --draws N       number of draws after which it ends, if the time is not over before; 0: no limit [0]
#   --repeat CASE   one draw, as the report of its failure names it, with all checks
#   --keep          keep the folder of data and runs, which is kept after a failure in any case
#
# GRADRING is the program that was built (default: build/release/gradring). A draw has at least three options that are
# not their defaults; in half of the draws the model is a file of random features, and in half the training is
# interrupted and resumed. Trainings have about twenty steps on data of a few kilobytes, which the script makes. Checks:
#
#   end       it ends with 0 and finite losses, or is refused before its first step with code 2 or 4 and a message
#   dry run   --dry-run accepts what the training accepts
#   record    eval finds the accuracy and loss that the training recorded, also with --ema and on the validation set
#   kill      interrupted and resumed, it comes to the tensors, losses and bits of the undisturbed training
#   layout    ZeRO, recomputation, saving, evaluating, logging and loader threads change no bit
#   ranks     other ranks: equal bits with --reproducible, else losses equal to rounding where docs/models.md says so
#   device    on a simulated GPU, the losses of a CPU to the rounding of 16 bits, where CUDA was built
#   exports   exported weights are the checkpoint's to the bit, and evaluate as the run does
#   predict   the test images as files get the logits of eval
#   commands  runs show, report, ckpt verify, export, plan and lr-find accept it
#
# Each draw has the first four, `device` where it fits, and three of the others. A failure is reduced by removing one
# option at a time as long as the same check fails, and printed with its commands and the argument of --repeat. ONNX
# files are checked where GRADRING_TEST_PYTHON, else python3, has onnx and onnxruntime. Exit code: 0 without failures,
# else 1. The program in option_pairs/ needs Python, but no packages.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

gradring=build/release/gradring
seed=$SRANDOM minutes=10 draws=0 repeat="" keep=""
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --seed | --draws)
      [[ ${2:-} =~ ^[0-9]+$ ]] || die "$1 needs a number"
      declare "${1#--}=$2"
      shift 2
      ;;
    --minutes)
      [[ ${2:-} =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "$1 needs a number of minutes, such as 1.5"
      minutes=$2
      shift 2
      ;;
    --repeat) repeat=${2:?--repeat needs a case}; shift 2 ;;
    --keep) keep=1; shift ;;
    -*) die "there is no option $1; see --help" ;;
    *) gradring=$1; shift ;;
  esac
done
gradring=$(from_here "$gradring")
[[ -x $gradring ]] || die "$gradring does not exist: build it, or name it"

folder=$(mktemp -d /tmp/gradring-pairs-XXXXXX) # short: sockets lie in it
status=0
python3 -B scripts/option_pairs --seed "$seed" --minutes "$minutes" --draws "$draws" --repeat "$repeat" \
  --folder "$folder" "$gradring" || status=$?
if ((status)) || [[ $keep ]]; then echo "data and runs are in $folder"; else rm -rf "$folder"; fi
exit "$status"
