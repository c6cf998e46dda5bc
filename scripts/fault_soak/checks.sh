# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For fault_soak.sh: what must hold after a fault.

# Everything that a run starts has the soak's folder as its TMPDIR.
processes_left() { grep -l -a -s -F "TMPDIR=$folder" /proc/[0-9]*/environ | sed 's|/proc/\([0-9]*\)/.*|\1|'; }
zombies_left() {
  if [[ -n ${SOAK_NAMESPACE:-} ]]; then ps -eo stat=,pid=,comm= | awk '$1 ~ /^Z/ {print "zombie", $2, $3}'; fi
}
all_folders() { find "$folder" -maxdepth 1 -name 'gradring-run-*'; }
# A launcher that is killed in the moment between making its folder and starting its guard leaves an empty one, which the next
# launcher removes: expect_no_folder sees whether it does.
folders_left() {
  local one
  for one in $(all_folders); do
    [[ -z $(find "$one" -mindepth 1 ! -name store 2>/dev/null) ]] && (flock -n 9) 2>/dev/null 9<"$one" || echo "$one"
  done
}
expect_no_folder() { [[ -z $(all_folders) ]] || fail "after the end of a run there is still $(all_folders)"; }
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

# expect_words_of_lost_ranks: whoever left a word in the agents' logs missed a rank, and names it.
expect_words_of_lost_ranks() {
  local file
  for file in "$run"/logs-*/*/attempt_*/*/error.json; do
    [[ -e $file ]] || continue
    grep -qE 'while rank [0-2] waited|reports that it (lost|timed out waiting for) |waited [0-9.]+ s for rank' "$file" ||
      fail "$file names no rank that was missed: $(cat "$file")"
    messages=$((messages + 1))
  done
}

# stops RANK: the steps after which it stopped by request, a line each.
stops() { sed -n 's/.*stopped by request after step \([0-9]*\).*/\1/p' "$run/run/logs/rank_$1.log" 2>/dev/null || true; }

# Before SIGTERM: how often each rank has stopped until now.
remember_stops() {
  stops_before=()
  local rank
  for rank in 0 1 2; do stops_before+=("$(stops $rank | wc -l)"); done
}

# expect_common_step: no rank has stopped since, for none had begun; or all have, behind the same step, and its checkpoint is the
# newest. $messages counts the latter.
expect_common_step() {
  local rank newest=""
  for rank in 0 1 2; do newest+="$(stops $rank | tail -n "+$((stops_before[rank] + 1))") "; done
  read -r -a newest <<<"$newest"
  ((${#newest[@]})) || return 0
  [[ ${newest[*]} == "${newest[0]} ${newest[0]} ${newest[0]}" ]] || fail "the ranks did not stop after one step: ${newest[*]}"
  [[ $(readlink "$run/run/checkpoints/latest") == "step-${newest[0]}" ]] ||
    fail "they stopped after step ${newest[0]}, but the newest checkpoint is $(readlink "$run/run/checkpoints/latest")"
  messages=$((messages + 1))
}

expect_sound_checkpoints() {
  [[ -e $run/run/checkpoints/latest ]] || return 0
  "$gradring" ckpt verify "$run/run" >"$run/verify.out" 2>&1 || fail "a checkpoint is not sound: $(cat "$run/verify.out")"
}
