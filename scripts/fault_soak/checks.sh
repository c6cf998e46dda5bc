# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For fault_soak.sh: what must hold after a fault.

# Everything that a run starts has the soak's folder as its TMPDIR.
processes_left() { grep -l -a -s -F "TMPDIR=$folder" /proc/[0-9]*/environ | sed 's|/proc/\([0-9]*\)/.*|\1|'; }
zombies_left() {
  if [[ -n ${SOAK_NAMESPACE:-} ]]; then ps -eo stat=,pid=,comm= | awk '$1 ~ /^Z/ {print "zombie", $2, $3}'; fi
}
folders_left() { find "$folder" -maxdepth 1 -name 'gradring-run-*'; }
shared_memory_left() { find /dev/shm -name '*gradring*' 2>/dev/null; }
# Unix sockets in the folder, and whoever listens at the agents' port.
sockets_left() {
  grep -F "$folder" /proc/net/unix || true
  awk -v port="$(printf ':%04X' "$port")" '$4 == "0A" && substr($2, length($2) - 4) == port' /proc/net/tcp
}

# Others use this machine, too.
remember_what_was_there() {
  port=$((20000 + RANDOM % 10000))
  before=$(shared_memory_left)
}

left() {
  processes_left
  folders_left
  sockets_left
  zombies_left
  shared_memory_left | grep -v -x -F -f <(echo "${before:-nothing}") || true
}

expect_nothing_left() {
  local last=$(( ${EPOCHREALTIME/[.,]/} + patience * 1000000))
  while [[ -n $(left) ]]; do
    ((${EPOCHREALTIME/[.,]/} < last)) || fail "$patience s after its end there is still: $(left | tr '\n' ' ')$(
      processes_left | xargs -r ps -o pid,ppid,stat,wchan:20,args -p)"
    sleep 0.02
  done
}

# expect_named ATTEMPT RANK PID: the launcher names who was killed, and so does every survivor that has left a word.
expect_named() {
  grep -q "rank $2 of 3 (pid $3 on .*) was killed by signal 9" "$run/launcher.err" ||
    fail "the launcher does not name rank $2 (process $3), which was killed in attempt $1"
  local file
  for file in "$run"/logs/none/attempt_"$1"/*/error.json; do
    [[ -e $file && $file != */"$2"/error.json ]] || continue
    grep -q "rank $2\b" "$file" || fail "$file does not name rank $2, which was killed"
    messages=$((messages + 1))
  done
}

# How often the ranks of this run have opened their logs.
times_begun() { grep -s -c '  rank 0 of 3, process' "$run/run/logs/rank_0.log" || true; }

# expect_common_step: all ranks of the newest attempt have stopped behind the same step, and its checkpoint is the newest.
# $messages counts those that had begun.
expect_common_step() {
  local log words all=""
  (($(times_begun) + 0 > begun_before + 0)) || return 0
  for log in "$run"/run/logs/rank_*.log; do
    [[ -e $log ]] || return 0
    words=$(awk '/  rank [0-9]+ of / {said = ""} {said = said "\n" $0} END {print said}' "$log")
    all+="$(sed -n 's/.*stopped: was asked to stop, and did behind step \([0-9]*\).*/\1/p' <<<"$words") "
  done
  read -r -a steps_of <<<"$all"
  ((${#steps_of[@]})) || return 0
  [[ ${steps_of[*]} == "${steps_of[0]} ${steps_of[0]} ${steps_of[0]}" ]] || fail "the ranks did not stop behind one step: $all"
  [[ $(readlink "$run/run/checkpoints/latest") == "step-${steps_of[0]}" ]] ||
    fail "they stopped behind step ${steps_of[0]}, but the newest checkpoint is $(readlink "$run/run/checkpoints/latest")"
  messages=$((messages + 1))
}

expect_sound_checkpoints() {
  [[ -e $run/run/checkpoints/latest ]] || return 0
  "$gradring" ckpt verify "$run/run" >"$run/verify.out" 2>&1 || fail "a checkpoint is not sound: $(cat "$run/verify.out")"
}
