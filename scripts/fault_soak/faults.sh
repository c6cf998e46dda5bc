# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# For fault_soak.sh: the kinds of faults. Each goes through as many runs as it takes, several faults a run.

most_in_a_run=20
most_runs_without=10 # a fault: then this script is what is wrong

begin_kind() {
  runs=0 faults=0 messages=0 in_run=0 without=0
  began=$SECONDS
}

# end_kind NAME WORDS: its line in the table.
end_kind() {
  if ((faults)); then printf '%-10s %7d %6d %8d %9d  %s\n' "$1" "$faults" "$runs" $((SECONDS - began)) "$messages" "$2"; fi
}

# begin_run KIND: how many faults are still to come, at most, is up to the caller.
begin_run() {
  runs=$((runs + 1))
  if ((in_run)); then without=0; else without=$((without + 1)); fi
  ((without <= most_runs_without)) || fail "$without runs went by without a fault"
  in_run=0
  make_run "$1-$runs"
}

count_fault() {
  faults=$((faults + 1))
  in_run=$((in_run + 1))
}

# variable PID NAME: of a worker's environment.
variable() { { tr '\0' '\n' <"/proc/$1/environ" | sed -n "s/^$2=//p"; } 2>/dev/null || true; }

# One of the workers that run now, at most one an attempt. $killed gets a line "ATTEMPT RANK PID".
kill_a_worker() {
  local them victim attempt rank
  mapfile -t them < <(ps -o pid=,comm= --ppid "$pid" | awk '$2 != "gradring-reaper" {print $1}')
  ((${#them[@]})) || return 0
  draw ${#them[@]}
  victim=${them[drawn]}
  attempt=$(variable "$victim" TORCHELASTIC_RESTART_COUNT)
  rank=$(variable "$victim" RANK)
  [[ -n $attempt && -n $rank && $attempt != "$last_attempt" ]] || return 0
  if kill -9 "$victim" 2>/dev/null; then
    last_attempt=$attempt
    killed+=("$attempt $rank $victim")
    count_fault
  fi
}

kill_workers() {
  begin_kind
  local line
  while ((faults < $1)); do
    begin_run workers
    killed=() last_attempt=""
    launch 1000
    while ((faults < $1 && in_run < most_in_a_run)) && ! is_over "$pid"; do
      nap 0 1200
      kill_a_worker
    done
    expect 0
    for line in "${killed[@]}"; do
      # shellcheck disable=SC2086  # three words
      expect_named $line
    done
    end_run
  done
  end_kind workers "restarted until they were through; every survivor's word names the rank"
}

# agent NAME: one of two nodes, with three ranks together. Whoever comes first leads.
start_agent() {
  local ranks=1
  if [[ $1 == other ]]; then ranks=2; fi
  start "$1" --nnodes 1:2 --nproc-per-node "$ranks" --rdzv-backend c10d --rdzv-endpoint "127.0.0.1:$port" \
    --rdzv-id soak --rdzv-conf last_call_timeout=0.3,join_timeout=60 --kill-grace 15 --log-dir "logs-$1"
}

start_both() {
  start_agent leader
  leader=$pid
  until [[ -n $(sockets_left) ]] || is_over "$leader"; do sleep 0.01; done
  start_agent other
  other=$pid
}

kill_agents() {
  begin_kind
  local victim
  while ((faults < $1)); do
    begin_run agents
    start_both
    while ((faults < $1 && in_run < most_in_a_run)) && ! is_over "$leader"; do
      nap 100 2000
      draw 2
      victim=$leader
      if ((drawn)); then victim=$other; fi
      kill -9 "$victim" 2>/dev/null || continue
      count_fault
      await "$victim"
      if [[ $victim == "$leader" ]]; then
        await "$other" # without its leader, or as the next one
        [[ $code == 161 || $code == 137 || ($code == 0 && -n $(weights)) ]] || fail "the other agent returned $code, not 161"
        expect_nothing_left
        if [[ -z $(weights) ]]; then start_both; fi
      else
        start_agent other
        other=$pid
      fi
    done
    await "$leader"
    [[ $code == 0 || $code == 137 ]] || fail "the leading agent returned $code"
    await "$other"
    [[ $code == 0 || $code == 137 ]] || fail "the other agent returned $code"
    expect_words_of_lost_ranks
    end_run
  done
  end_kind agents "the others went on, or stopped with 161 where the leader was lost, and went on later"
}

# kill_launchers COUNT NAME HOW WORDS: HOW starts each.
kill_launchers() {
  begin_kind
  while ((faults < $1)); do
    begin_run "$2"
    "$3" 0
    while ((faults < $1 && in_run < most_in_a_run)) && ! is_over "$pid"; do
      nap 0 1500
      kill -9 "$pid" 2>/dev/null || break
      count_fault
      await "$pid"
      expect_nothing_left
      "$3" 0
    done
    expect 0
    end_run
  done
  end_kind "$2" "$4"
}

ask_to_stop() {
  begin_kind
  while ((faults < $1)); do
    begin_run terms
    remember_stops
    launch 0
    while ((faults < $1 && in_run < most_in_a_run)); do
      nap 0 1500
      kill -TERM "$pid" 2>/dev/null || break
      await "$pid"
      if [[ $code == 0 && -n $(weights) ]]; then break; fi # it was through already
      [[ $code == 143 ]] || fail "after SIGTERM the launcher returned $code, not 143"
      count_fault
      expect_nothing_left
      expect_common_step
      expect_sound_checkpoints
      remember_stops
      launch 0
    done
    await "$pid"
    [[ $code == 0 ]] || fail "the launcher returned $code, not 0"
    end_run
  done
  end_kind terms "143; \"messages\": of these so many had begun, and all ranks stopped behind one step"
}

# freeze SECONDS: stops the launcher and all that it has started, as the cgroup freezer would. False if it has ended before.
freeze() {
  kill -STOP "$pid" 2>/dev/null || return 1 # first: it starts no more
  local frozen
  mapfile -t frozen < <(processes_left)
  kill -STOP "${frozen[@]}" 2>/dev/null || true
  sleep "$1"
  kill -CONT "${frozen[@]}" 2>/dev/null || true
}

freeze_all() {
  begin_kind
  timeout=3
  while ((faults < $1)); do
    begin_run freezes
    if ((runs % 2 == 0)); then layout="--comm tcp"; fi
    launch 0
    layout=""
    while ((faults < $1 && in_run < 5)) && ! is_over "$pid"; do
      nap 0 1500
      freeze $((2 * timeout)) || break
      count_fault
    done
    expect 0
    end_run
  done
  timeout=20
  end_kind freezes "all went on; every other run over TCP"
}
