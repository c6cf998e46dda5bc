# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154,SC2164,SC2317
# For fault_soak.sh: faults of which each has a training of its own, several trainings at a time. A case is a line of text that
# says what is done to which training; --repeat does it again. Each runs in a subshell, in which $folder is its own.

case_seconds=60 # a training takes less than one

# Of two ranks, small: what counts is the files that it writes. Checkpoints after steps 3, 4, 6 and 8, evaluations after 4 and 8.
attacked_training() {
  echo train --device cpu --threads 1 --reproducible --dataset mnist --data-dir data --global-batch 16 --batch-size 8 \
    --steps "$attacked_steps" --epochs 1000 --save-every-steps 3 --keep-last 2 --progress none --timeout 20s --resume auto \
    --run-dir run
}

# bytes NUMBER...: of 32 bits each, as the headers of IDX files have them.
bytes() {
  local number
  for number; do printf '%b' "$(printf '%08x' "$number" | sed 's/../\\x&/g')"; done
}

# write_data FOLDER SPLIT SAMPLES: MNIST's files, with 10x10 images that a pattern fills.
write_data() {
  local pixels
  pixels=$(for ((i = 0; i < 1009; ++i)); do printf '\\x%02x' $((i * i * 31 % 251)); done)
  { bytes $((0x803)) "$3" 10 10; head -c $(($3 * 100)) < <(while printf '%b' "$pixels"; do :; done 2>/dev/null); } \
    >"$1/$2-images-idx3-ubyte"
  { bytes $((0x801)) "$3"; head -c "$3" < <(while printf '\0\1\2\3\4\5\6\7\10\11'; do :; done 2>/dev/null); } \
    >"$1/$2-labels-idx1-ubyte"
}

# What a user has beside a run, some of it by names that resemble ours; nothing of it may change.
make_canaries() {
  mkdir -p work/data/mnist work/run-old/checkpoints/step-4 work/runs gradring-run-old gradring-run-report gradring-soak archive
  write_data work/data/mnist train 64
  write_data work/data/mnist t10k "$1"
  echo weights >work/run-old/checkpoints/step-4/model.safetensors
  ln -s step-4 work/run-old/checkpoints/latest
  echo mine | tee work/notes.txt work/metrics.jsonl work/run.tmp gradring-run-old/results.csv gradring-run-report/results.csv \
    gradring-soak/x archive/model.safetensors archive/meta.json gradring-run-file00 >/dev/null
  ln -s "archive" gradring-run-linked
}
canary_names=(archive gradring-run-old gradring-run-report gradring-run-linked gradring-run-file00 gradring-soak)

# Everything in the case's folder but the run and what its launchers say, to the byte and the nanosecond.
canaries() {
  cd "$folder"
  local of_the_run=(-path work -o -path work/run -o -path 'work/run/*' -o -path 'work/logs*' -o -path 'work/*.out'
    -o -path 'work/*.err')
  find "${canary_names[@]}" work ! \( "${of_the_run[@]}" \) -printf '%p %y %m %s %T@ %l\n' | sort
  find "${canary_names[@]}" work ! \( "${of_the_run[@]}" \) -type f -print0 | sort -z | xargs -0 sha256sum
}

# Steps, losses and evaluations, without times.
figures() {
  sed -nE 's/.*"step":([0-9]*),"epoch":[0-9]*,"loss":([^,]*),.*/\1 \2/p; /"event":"eval"/ { s/"(time|seconds)":[^,}]*//g; p }' \
    "$run/run/metrics.jsonl" 2>/dev/null || true
}

# prepare NAME TEST-SAMPLES: the folder that cases copy, and what an undisturbed training there comes to.
prepare() {
  template=$soak/$1
  mkdir "$template" "$template/work"
  (cd "$template" && make_canaries "$2")
  rm -rf "$soak/$1-undisturbed"
  cp -a "$template" "$soak/$1-undisturbed"
  (
    enter "$soak/$1-undisturbed" 0
    launch 0
    expect 0
    weights >"$soak/$1.weights"
    figures >"$soak/$1.figures"
  )
  [[ -s $soak/$1.weights && -s $soak/$1.figures ]] || die "the undisturbed training of $1 has no weights or figures"
}

# enter FOLDER NUMBER: in a subshell, where everything of runs.sh and checks.sh is about this folder.
enter() {
  folder=$1 run=$1/work
  ranks=2 port=$((20000 + (10#$2 + seed) % 10000))
  longest_run=$case_seconds
  training() { attacked_training; }
  zombies_left() { :; }      # of the cases beside it, too
  shared_memory_left() { :; }
  all_folders() {
    find "$folder" -maxdepth 1 -name 'gradring-run-??????' ! -name '*-report' ! -name '*-linked' ! -name '*-file00'
  }
  trap - EXIT
}

# attack CASE: does it, or says what was otherwise; leaves a line "KIND CODE" in $soak/outcomes.
attack() {
  local number=$1 case=$2
  enter "$soak/c$number" "$number"
  fail() {
    local words="$case: $*"
    echo "${words:0:600}" >>"$soak/failures"
    echo "$case" >>"$soak/done"
    for pid in $(processes_left); do kill -9 "$pid" 2>/dev/null || true; done
    exit 1
  }
  # shellcheck disable=SC2086  # words
  set -- $case
  "attack_$1" "${@:2}"
  echo "$case" >>"$soak/done"
  rm -rf "$folder"
}

last_words() { tail -q -n 2 "$run"/*.err | tr '\n' ' '; }

# outcome KIND CODE: of the case; into the table.
outcome() { echo "$*" >>"$soak/outcomes"; }

# expect_outcome TEMPLATE CODES: $code is 0 and the training complete, or one of CODES and it can be resumed, to the same end.
expect_outcome() {
  expected=$(<"$soak/$1.weights")
  if ((code == 0)); then
    [[ -n $(weights) ]] || fail "exit code 0 without the weights in summary.json"
  else
    [[ " $2 " == *" $code "* ]] || fail "exit code $code; expected 0 or one of $2: $(last_words)"
  fi
  expect_nothing_running
  if ((code != 0)) || [[ -n $(all_folders) ]]; then
    launch 0
    await "$pid"
    ((code == 0)) || fail "resumed, it ended with $code: $(last_words)"
  fi
  expect_weights
  [[ $(figures) == "$(<"$soak/$1.figures")" ]] ||
    fail "metrics.jsonl differs from the undisturbed run's: $(figures | diff - "$soak/$1.figures" | tr '\n' ' ')"
  [[ -e $run/run/checkpoints/step-$attacked_steps/meta.json ]] || fail "exit code 0 without the checkpoint of the last step"
  expect_nothing_left
  expect_no_folder
  [[ $(canaries) == "$before_it" ]] ||
    fail "files of the user have changed: $(canaries | diff - <(echo "$before_it") | tr '\n' ' ')"
}

# Processes alone: a launcher that was killed leaves its folder to the next one.
expect_nothing_running() {
  local last=$((${EPOCHREALTIME/[.,]/} + patience * 1000000))
  while [[ -n $(processes_left) ]]; do
    ((${EPOCHREALTIME/[.,]/} < last)) ||
      fail "$patience s after its end there is still: $(processes_left | xargs -r ps -o pid,ppid,stat,args -p)"
    sleep 0.02
  done
}

# attack_all NAME CASES WORDS: the lines of the file CASES, in the order in which they stand; then a line of the table.
attack_all() {
  local began=$SECONDS number=0 case
  : >"$soak/outcomes"
  : >"$soak/failures"
  : >"$soak/done"
  while read -r case; do
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n 2>/dev/null || true; done
    number=$((number + 1))
    (attack "$(printf '%05d' "$number")" "$case") 2>>"$soak/bash.err" & # bash tells of every job that was killed
  done <"$2"
  wait
  # What this script itself cannot do must not pass for a fault without harm.
  sort "$soak/done" | comm -23 <(sort "$2") - | sed "s|\$|: no outcome, see $soak/bash.err|" >>"$soak/failures"
  printf '%-10s %7d %6d %8d %9d  %s\n' "$1" "$(grep -vc ' missed$' "$soak/outcomes")" "$number" $((SECONDS - began)) \
    "$(grep -c ' [1-9]' "$soak/outcomes")" "$3"
  # Of each kind, how often which exit code.
  sort "$soak/outcomes" | uniq -c |
    awk '{line[$2] = line[$2] sprintf("%9s", $3) " x" $1} END {for (kind in line) printf "  %-34s%s\n", kind, line[kind]}' | sort
  if [[ -s $soak/failures ]]; then
    cat "$soak/failures" >>"$soak/all_failures"
    echo "  FAILED: $(wc -l <"$soak/failures")"
    sed 's/^/  /' "$soak/failures"
  fi
}

# some_of COUNT: of the lines that come, so many, drawn; or all.
some_of() {
  awk -v seed="$seed" 'BEGIN {srand(seed)} {printf "%.9f\t%s\n", rand(), $0}' | sort | cut -f 2- |
    awk -v count="$1" 'count == "all" || NR <= count'
}
