# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2054,SC2154,SC2317
# For fault_soak.sh: every signal in every phase of a training, to a rank, its launcher, or one of two agents. What phase it is, the
# training's own files say.

signals_sent=(KILL SEGV STOP TERM INT HUP QUIT USR1 USR2)
phases=(start rendezvous step save evaluation restart end)
most_misses=8 # the phase was over before the signal was sent

# Codes that may follow: as a program that dies of the signal, or as docs/checkpoints.md says.
codes_after() {
  case $1 in
    STOP) ;;
    KILL) echo 137 ;;
    SEGV) echo 139 ;;
    TERM) echo 143 ;;
    INT) echo 130 143 ;; # 143: another rank was the first to stop behind the common step
    HUP) echo 129 143 ;;
    QUIT) echo 131 ;;
    USR1) echo 138 143 ;;
    USR2) echo 140 ;;
  esac
}

prepare_signals() {
  attacked_steps=24
  prepare signals 3000
}

# The cases, a line each. With agents each of them has one rank.
signal_cases() {
  local phase target signal
  for phase in "${phases[@]}"; do
    for signal in "${signals_sent[@]}"; do
      for target in rank0 rank1 launcher agents/rank0 agents/rank1 agents/leader agents/other; do
        echo "signal $phase $target $signal"
      done
    done
  done
}

# doze: a moment, without a process for it.
exec {never}<> <(:)
doze() { read -r -t 0.002 -u "$never" || true; }

# value PID NAME: $found is the variable of the process, or empty.
value() {
  local all=() each
  found=""
  { mapfile -d '' all <"/proc/$1/environ"; } 2>/dev/null || return 0
  for each in "${all[@]}"; do
    if [[ $each == "$2="* ]]; then found=${each#*=}; fi
  done
}

# find_rank RANK ATTEMPT PARENT...: $victim is the process, once it is there.
find_rank() {
  local parent child children
  for parent in "${@:3}"; do
    children=""
    { read -r children <"/proc/$parent/task/$parent/children"; } 2>/dev/null || true
    for child in $children; do
      value "$child" RANK
      [[ $found == "$1" ]] || continue
      value "$child" TORCHELASTIC_RESTART_COUNT
      if ((${found:-0} >= $2)); then
        victim=$child
        return 0
      fi
    done
  done
  return 1
}

# lines_of FILE: $lines.
lines_of() {
  lines=()
  { mapfile -t lines <"$1"; } 2>/dev/null || true
}

# is_in PHASE: now. $after lines of metrics have been written before.
is_in() {
  local lines
  case $1 in
    start) return 0 ;;
    rendezvous) compgen -G "$folder/gradring-run-??????/store/key-*" >/dev/null; return ;;
    restart)
      lines_of "$run/launcher.err"
      [[ ${lines[*]:-} == *"restarting all workers"* ]]
      return
      ;;
    end) [[ -e $run/run/summary.json ]]; return ;;
  esac
  lines_of "$run/run/metrics.jsonl"
  ((${#lines[@]} > after)) || return 1
  case $1 in
    step) return 0 ;;
    save) compgen -G "$run/run/checkpoints/step-*.partial" >/dev/null; return ;;
    evaluation) [[ ${lines[-1]} =~ \"event\":\"(train|ranks)\",.*\"step\":([0-9]+), ]] && ((BASH_REMATCH[2] % 4 == 0)); return ;;
  esac
}

# await_phase PHASE: or fails where the training is over.
await_phase() {
  until is_in "$1"; do
    if is_over "$leader"; then return 1; fi
    doze
  done
}

start_agents() {
  local elastic=(--nnodes 1:2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint "127.0.0.1:$port" --rdzv-id soak
    --rdzv-conf last_call_timeout=0.3,join_timeout=20 --max-restarts 3 --min-progress-steps 0 --backoff 0)
  start launcher "${elastic[@]}"
  leader=$pid
  until [[ -n $(sockets_left) ]] || is_over "$leader"; do doze; done
  start other "${elastic[@]}"
  other=$pid
}

# send_signal PHASE TARGET SIGNAL: fails where there was nobody to send it to any more.
send_signal() {
  local attempt=0 role=${2#agents/}
  if [[ $1 == restart ]]; then
    after=0
    await_phase step || return 1
    find_rank 1 0 "$leader" "$other" || return 1
    kill -KILL "$victim" 2>/dev/null || return 1
    attempt=1
  fi
  await_phase "$1" || return 1
  case $role in
    launcher | leader) victim=$leader ;;
    other) victim=$other ;;
    rank*) until find_rank "${role#rank}" "$attempt" "$leader" "$other"; do
      if is_over "$leader"; then return 1; fi
      doze
    done ;;
  esac
  if [[ $1 == @(start|rendezvous|restart) ]]; then nap 0 40; fi
  kill "-$3" "$victim" 2>/dev/null || return 1
  if [[ $3 == STOP ]]; then
    nap 50 300
    kill -CONT "$victim" 2>/dev/null || true
  fi
}

# attack_signal PHASE TARGET SIGNAL
attack_signal() {
  local misses=0 codes which each
  while :; do
    cp -a "$soak/signals" "$folder"
    before_it=$(canaries)
    draw 20
    after=$drawn other=""
    if [[ $2 == agents/* ]]; then start_agents; else
      launch "$([[ $1 == restart ]] && echo 3 || echo 0)"
      leader=$pid
    fi
    if send_signal "$@"; then break; fi
    misses=$((misses + 1))
    if ((misses > most_misses)); then
      outcome "$1" missed
      return
    fi
    await "$leader"
    if [[ -n $other ]]; then await "$other"; fi
    rm -rf "$folder"
  done
  codes=$(codes_after "$3")
  # An agent that has lost its leader says so, or leads itself.
  if [[ -n $other ]]; then codes+=" 161 $([[ $2 == agents/other ]] || echo 137)"; fi
  await "$leader"
  which=$code
  [[ $code == 0 || " $codes " == *" $code "* ]] || fail "exit code $code; expected 0 or one of $codes: $(last_words)"
  if [[ -n $other ]]; then
    await "$other"
    [[ $code == 0 || " $codes " == *" $code "* ]] || fail "the other agent's exit code is $code; expected 0 or one of $codes"
    if ((code == 0)) && [[ -n $(weights) ]]; then which=0; fi
  fi
  code=$which
  outcome "$1-${2/\//-}" "$code"
  expect_outcome signals "$codes"
}

# attack_signals COUNT
attack_signals() {
  if [[ $1 == 0 ]]; then return; fi
  prepare_signals
  signal_cases | some_of "${1/each/all}" >"$soak/cases"
  attack_all signals "$soak/cases" "finished, or resumed to the same weights and figures; \"messages\": of these so many were resumed"
}
