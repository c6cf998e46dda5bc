#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on two hosts that another launcher starts, when one is killed and when the job is preempted: all end, nothing is left
# behind, and --resume auto comes to the weights of an uninterrupted run. Prints a line for each case.
#
# Usage: restarts.sh GRADRING LAUNCHER   srun, mpirun (Open MPI), mpich or torchrun
# shellcheck source=tests/train/launch/nodes/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
# shellcheck source=tests/train/launch/nodes/launchers.sh
source "$here/launchers.sh"
need_launcher "$2"
enter_namespaces "$@"
gradring=$(realpath "$1")
launcher=$2
make_hosts 2
start_launcher "$launcher" 2
training+=(--steps 30 --save-every-steps 4 --resume auto)
"$gradring" launch --nproc-per-node 2 "${training[@]}" --run-dir "$folder/own" >/dev/null

# Slow enough for a signal to come while it trains.
slow=()
for step in {6..30}; do slow+=(--inject "delay:rank=1,step=$step,ms=200"); done

# begin WHAT: begins a case.
begin() {
  what=$1
  rm -rf "$folder/run" "$folder"/*.err
  began=$EPOCHREALTIME
}

# start OPTIONS...: the launcher; its pid is in $started.
start() {
  launch "$launcher" 2 1 "$gradring" "${training[@]}" --run-dir "$folder/run" "$@" >"$folder/launcher.err" 2>&1 &
  started=$!
}

# fail WHY
fail() {
  echo "$what: $1" >&2
  tail -n 20 "$folder"/*.err >&2
  exit 1
}

# has_saved STEP: waits for that checkpoint.
has_saved() {
  for ((i = 0; i < 1000; ++i)); do
    if [[ -d $folder/run/checkpoints/step-$1 ]]; then return; fi
    sleep 0.02
  done
  fail "there is no checkpoint of step $1"
}

# report CODES: what has happened since begin.
report() {
  awk -v a="$began" -v b="$EPOCHREALTIME" -v what="$what" -v codes="$1" \
    'BEGIN {printf "%-50s exit code %-10s %5.1f s\n", what, codes, b - a}'
}

# ends CODES: the launcher ends with one of these, and no rank is left.
ends() {
  expect "$1" "$started" "$launcher ($what)"
  report "$code"
  no_rank_is_left
}

no_rank_is_left() {
  for ((i = 0; i < 500; ++i)); do
    if ! pgrep -f "^$gradring .*$folder/run" >/dev/null; then return; fi
    sleep 0.02
  done
  fail "ranks are left: $(pgrep -af "^$gradring .*$folder/run")"
}

# resumes: the same command goes on after the checkpoint of step $from, to the same weights.
resumes() {
  began=$EPOCHREALTIME what="  resumed after step $from"
  start
  ends 0
  went_on_after "$from"
}

# stopped_by_request: by a signal, after the step $from.
stopped_by_request() {
  from=$(sed -n 's/.*stopped by request after step //p' "$folder/run/logs/rank_0.log")
  [[ $from ]] || fail 'it was not stopped by a request'
}

# went_on_after STEP: the last run resumed there, and came to the weights of an uninterrupted one.
went_on_after() {
  grep -q "resumes after step $1" "$folder/run/logs/rank_0.log" || fail 'it began anew'
  same_weights run
}

killed() {
  begin "a rank is killed${launcher_options[*]:+, ${launcher_options[*]}}"
  start --inject delay:rank=1,step=6,ms=3000 --inject kill:rank=1,step=7
  ends "$1"
  from=4
  resumes
}

# preempted SIGNAL CODE: the launcher gets the signal.
preempted() {
  begin "SIG$1 to $launcher"
  start "${slow[@]}"
  has_saved 4
  kill -s "$1" "$started"
  ends "$2"
  stopped_by_request
  resumes
}

cases_of_mpirun() {
  killed 137
  preempted USR1 143
  # mpirun takes as long until it sends SIGTERM, and again until SIGKILL: by default 1 s.
  launcher_options=(--mca odls_base_sigkill_timeout 2)
  preempted TERM 1
}

# mpiexec may fail at an assertion of its own, then with 255; and returns 0 if ranks take time to leave after a signal.
cases_of_mpich() {
  killed '9|255'
  preempted USR1 '0|143'
  preempted TERM '0|143'
}

# An attempt has a store of its own, at the same port. In the second case the agent of host a stops its rank because the
# other agent waits for it, and does not count that as a restart: TORCHELASTIC_RESTART_COUNT is 0 there, and 1 on host b.
cases_of_torchrun() {
  launcher_options=(--max-restarts 1 --rdzv-conf last_call_timeout=1)
  begin 'a rank is killed'
  start --inject delay:rank=1,step=6,ms=3000 --inject kill:rank=1,step=7
  ends 0
  went_on_after 4

  begin 'a rank is killed, restart counts differ'
  start --inject delay:rank=0,step=7,ms=2500 --inject delay:rank=1,step=6,ms=3000 --inject kill:rank=1,step=7
  ends 0
  went_on_after 4
  # A fault is planned by the first attempt only.
  [[ $(grep -c 'planned: kill' "$folder"/run/logs/rank_?.log) == *rank_0.log:2*rank_1.log:1 ]] || fail 'the restart counts are equal'

  begin 'SIGTERM to torchrun on both hosts'
  start "${slow[@]}"
  has_saved 4
  pkill -TERM -P "$started"
  ends 1
  stopped_by_request
  began=$EPOCHREALTIME what='  resumed by gradring launch'
  "$gradring" launch --nproc-per-node 2 "${training[@]}" --run-dir "$folder/run" >/dev/null
  report 0
  same_weights run
}

# batch: submits a job whose step runs the ranks; its number is in $job, its output in job.err.
batch() {
  {
    printf '#!/bin/bash\nexec srun --kill-on-bad-exit=1'
    printf ' %q' "$gradring" "${training[@]}" --run-dir "$folder/run" "${slow[@]}"
  } >"$folder/job"
  job=$(at a sbatch --parsable --nodes 2 --ntasks-per-node 1 --requeue --open-mode append --output "$folder/job.err" "$folder/job")
}

# job_ends STATE: waits for it.
job_ends() {
  local state
  for ((i = 0; i < 500; ++i)); do
    state=$(at a scontrol show job "$job" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p')
    case $state in
      "$1") report "$(at a scontrol show job "$job" | sed -n 's/.*ExitCode=\([0-9:]*\)/\1/p')"; return ;;
      # A job that was requeued has to wait for two minutes.
      PENDING) at a scontrol update "jobid=$job" starttime=now 2>/dev/null || true ;;
    esac
    sleep 0.1
  done
  fail "the job is $state, expected $1"
}

cases_of_srun() {
  local signal
  launcher_options=(--kill-on-bad-exit=1)
  killed '137|143|161'
  launcher_options=(--kill-on-bad-exit=0)
  killed '137|161'
  launcher_options=()
  for signal in USR1 TERM; do
    begin "scancel --signal=$signal"
    batch
    has_saved 4
    at a scancel --signal="$signal" "$job"
    job_ends FAILED
    no_rank_is_left
    stopped_by_request
    resumes
  done
  begin 'scontrol requeue'
  batch
  has_saved 4
  at a scontrol requeue "$job"
  job_ends COMPLETED
  stopped_by_request
  went_on_after "$from"
  begin 'a node is lost'
  batch
  has_saved 4
  at a scontrol update nodename=b state=down reason=test
  for ((i = 0; i < 100; ++i)); do
    if at a scontrol update nodename=b state=resume 2>/dev/null; then break; fi
    sleep 0.1
  done
  job_ends COMPLETED
  went_on_after '[0-9]'
}

"cases_of_$launcher"
