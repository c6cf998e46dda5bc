#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each check of scripts/option_pairs.sh must fail where its promise is broken: wrappers of the program break one each.
#
# Usage: planted.sh GRADRING
# shellcheck disable=SC2016 # the wrappers expand what plant is given
set -euo pipefail
gradring=$1
script=$(dirname "$0")/../../../scripts/option_pairs.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# plant CODE: a program that does CODE, a part of a bash script, before it passes its words on to gradring.
plant() {
  cat >"$folder/planted" <<END
#!/usr/bin/env bash
words=" \$* "
$1
exec "$gradring" "\$@"
END
  chmod +x "$folder/planted"
}

# judge NAME CASE STATUS PATTERN: the script ends with STATUS and its output contains PATTERN.
judge() {
  local status=0
  "$script" --seed 1 --repeat "$2" "$folder/planted" >"$folder/out" 2>&1 || status=$?
  sed -n 's/^data and runs are in //p' "$folder/out" | xargs -r rm -rf
  if [[ $status == "$3" ]] && grep -qE -- "$4" "$folder/out"; then
    echo "$1: as expected"
  else
    echo "$1: ended with $status, expected $3 and a line that matches '$4':"
    cat "$folder/out"
    failures=1
  fi
}

# Two ranks, so that a layout and another number of ranks can be compared.
everything='{"ranks": ["--nprocs", "2"], "zero": ["--zero", "1"], "kill": "exit", "ema": ["--ema", "0.9"]}'
expect_found() { judge "$1" "$everything" 1 "^FAILED $2"; }

plant ''
judge "no fault" "$everything" 0 "1 trained, 0 refused, 0 failed"

# In the place of the training in a run directory, one with other settings.
disturb() { plant "[[ \$words != *\" --run-dir $1 \"* ]] || export GRADRING_$2"; }

plant '[[ $words != *" train "* || $words == *" --dry-run "* ]] || exit 1'
expect_found "a training that fails" "end: the training ends with 1"
plant '[[ $words != *" train "* || $words == *" --dry-run "* ]] || { echo "gradring train: x.cpp:3: no" >&2; exit 2; }'
expect_found "an internal message" "end: refused with an internal message"
plant '[[ $words != *" --dry-run "* ]] || { echo "gradring train: no" >&2; exit 2; }'
expect_found "a dry run that refuses" "dry run: "
plant '[[ $words != *" eval "* || $words == *" --ema "* ]] || set -- "$@" --normalize 0.3:0.4'
expect_found "an evaluation by other pixels" "record: (accuracy|loss) of the test set"
plant '[[ $words != *" eval "*" --ema "* ]] || set -- "$@" --normalize 0.3:0.4'
expect_found "an evaluation of averaged weights by other pixels" "record: ema_(accuracy|loss) of the test set"
plant '[[ $words != *" --resume auto "* && $words != *" --resume auto" ]] || export GRADRING_CLIP_NORM=0.01'
expect_found "a resume with other options" "kill: .* has other tensors"
plant '[[ $words != *" --resume auto "* && $words != *" --resume auto" ]] || { echo "gradring train: no" >&2; exit 4; }'
expect_found "a resume that is refused" "kill: the resume ends with 4"
plant '[[ $words != *" exit:rank="* ]] || exit 0'
expect_found "a fault that is not injected" "kill: the training that is to be interrupted"
disturb layout LABEL_SMOOTHING=0.2
expect_found "another layout with other results" "layout: .* has other tensors"
disturb ranks LABEL_SMOOTHING=0.2
expect_found "another number of ranks with other losses" "ranks: .* the loss of step"
judge "another number of ranks with other bits" '{"reproducible": ["--reproducible", "--global-batch", "24",
  "--shard-size", "4"]}' 1 "^FAILED ranks: .* has other tensors"
plant 'if [[ $words == *" export "*.safetensors* ]]; then
  "'"$gradring"'" "$@" || exit
  file=out.weights.safetensors
  printf x | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 1)) conv=notrunc status=none
  exit
fi'
expect_found "an export that is altered" "exports: .* differs from the checkpoint"
plant '[[ $words != *" predict "* ]] || set -- "$@" --normalize 0.3:0.4'
expect_found "a prediction by other pixels" "predict: predict gives logit"
plant '[[ $words != *" plan "* ]] || exit 3'
expect_found "a plan that fails" "commands: plan .* ends with 3"

# A fault of two options among six is reduced to these two.
plant '[[ $words != *" train "*" --clip-norm "*" --ema "* || $words == *" --dry-run "* ]] || exit 1'
judge "a fault of two options" '{"clip": ["--clip-norm", "0.5"], "smoothing": ["--label-smoothing", "0.1"],
  "ema": ["--ema", "0.9"], "tta": ["--tta", "flip"], "model.norm": "plain", "save": ["--keep-last", "1"]}' 1 \
  "--repeat '\{\"clip\": \[\"--clip-norm\", \"0.5\"\], \"ema\": \[\"--ema\", \"0.9\"\]\}'"
exit "$failures"
