# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For fault_soak.sh: trainings that are begun, gone on with, and waited for. $run is the folder of the current one, $pid its
# launcher, $code how a launcher ended.

longest_run=180 # seconds, of a training that does not hang

# fail WHAT: says so, and how to come here again.
fail() {
  exec 2>&1
  echo "--- what the launchers said last" >&2
  tail -n 8 "$run"/*.err >&2 || true
  die "$*; seed $seed, the run is kept in $run"
}

# draw N: $drawn is one of 0 .. N-1.
draw() { drawn=$(((RANDOM * 32768 + RANDOM) % $1)); }

# nap FROM TO: milliseconds, drawn.
nap() {
  draw $(($2 - $1))
  sleep "$(printf '%d.%03d' $((($1 + drawn) / 1000)) $((($1 + drawn) % 1000)))"
}

make_run() {
  run=$folder/$1
  mkdir "$run"
}

ranks=3 layout="" timeout=20 # seconds

training() {
  echo train --device cpu --threads 1 --reproducible --precision "$precision" --global-batch 24 --batch-size 8 "$layout" --steps "$steps" --epochs 1000 \
    --save-every-steps 10 --keep-last 2 --progress none --timeout "${timeout}s" --resume auto --run-dir run
}

# start NAME WORD...: `gradring launch WORD... train ...` in the run's folder; its words go to NAME.err.
environment=() # of the launcher, besides: NAME=value
start() {
  local name=$1
  shift
  # shellcheck disable=SC2046  # the training's words
  (cd "$run" && exec env TMPDIR="$folder" "${environment[@]}" "$gradring" launch "$@" $(training)) \
    >>"$run/$name.out" 2>>"$run/$name.err" &
  pid=$!
}

# launch RESTARTS: on one node, with the last words of every worker.
launch() {
  start launcher --nproc-per-node "$ranks" --log-dir logs -r 3 --max-restarts "$1" --min-progress-steps 0 --backoff 0
}

# launch_another_way RESTARTS: by a layout that is drawn.
launch_another_way() {
  draw 4
  ranks=$((drawn + 1))
  draw 4
  layout="--zero $drawn"
  draw 2
  if ((drawn)); then layout+=" --checkpoint-activations 2"; fi
  launch "$1"
  ranks=3 layout=""
}

is_over() { ! kill -0 "$1" 2>/dev/null; }

# await PID: $code is how it ended.
await() {
  local last=$((SECONDS + longest_run))
  until is_over "$1" || ((SECONDS >= last)); do sleep 0.01; done
  is_over "$1" || fail "process $1 does not end"
  code=0
  wait "$1" || code=$?
} 2>>"$folder/bash.err" # which tells of every job that was killed

# expect CODE: of the newest launcher.
expect() {
  await "$pid"
  [[ $code == "$1" ]] || fail "the launcher returned $code, not $1"
}

# Of the run that has ended; nothing, if it has not.
weights() { sed -n 's/.*"parameters_sha256": *"\([0-9a-f]*\)".*/\1/p' "$run/run/summary.json" 2>/dev/null || true; }

expect_weights() { [[ $(weights) == "$expected" ]] || fail "the weights are $(weights), not $expected"; }

# A run that came to its end well is not kept.
end_run() {
  expect_weights
  expect_nothing_left
  expect_no_folder
  rm -rf "$run"
}
