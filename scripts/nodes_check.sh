#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three network namespaces as hosts, with 2, 1 and 1 ranks: trains over them; kills a rank; then cuts one host off (its link is set
# down) and sees the rest go on from the last checkpoint; then lets a host join later. All come to the weights of one host.
#
# Usage: scripts/nodes_check.sh [GRADRING [DEVICE]]
#
# GRADRING is the program that was built (default: build/release/gradring), DEVICE what its ranks train on (default: cpu; cuda
# needs two GPUs on this machine, or the program of tests/train/core/cuda_module/stand_in). Makes and removes namespaces and veth
# pairs, which needs root, `ip` (iproute2) and `unshare` (util-linux); where that is refused, it says why and exits with 77.
# Each host has processes and a boot id of its own. Prints what each case came to, and how long the rest took to go on after
# the loss of a host; ends with an error at the first that went wrong.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ ${1:-} == -h || ${1:-} == --help ]]; then usage; exit; fi
gradring=$(from_here "${1:-build/release/gradring}")
device=${2:-cpu}
[[ -x $gradring ]] || die "$gradring is not there: build it, or name it"
tag=gr$$
may_make_hosts() {
  local name
  for name in ip unshare; do command -v "$name" >/dev/null || { echo "there is no command $name"; return 1; }; done
  ip netns add "$tag-hub" && ip -n "$tag-hub" link add name switch type bridge &&
    ip -n "$tag-hub" link add port type veth peer name other && ip -n "$tag-hub" link del port &&
    unshare --pid --fork --kill-child --mount-proc mount --bind /dev/null /proc/sys/kernel/random/boot_id
}
if ! refused=$(may_make_hosts 2>&1); then
  ip netns del "$tag-hub" 2>/dev/null || true
  echo "skipped: needs ip (iproute2), unshare (util-linux), and the right to make namespaces, bridges and veth pairs: ${refused//$'\n'/; }"
  exit 77
fi
folder=$(mktemp -d)
agents=()
GRADRING_TOKEN=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')
export GRADRING_TOKEN
if [[ -e ${gradring%/*}/libnccl.so.2 ]]; then # the program of tests/train/core/cuda_module/stand_in
  export LD_LIBRARY_PATH=${gradring%/*}
fi

clean_up() {
  for agent in "${agents[@]}"; do kill -9 "$agent" 2>/dev/null || true; done
  for host in 0 1 2 hub; do ip netns del "$tag-$host" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap clean_up EXIT

# fail WHAT: says so, with the agents' last words.
fail() {
  tail -n 5 "$folder"/*.err >&2
  die "$*"
}

# Host n has 10.99.0.(n+1); the hub is a switch.
make_hosts() {
  ip -n "$tag-hub" link set switch up
  for host in 0 1 2; do
    ip netns add "$tag-$host"
    ip -n "$tag-hub" link add "port$host" type veth peer name eth0 netns "$tag-$host"
    ip -n "$tag-hub" link set "port$host" master switch
    ip -n "$tag-hub" link set "port$host" up
    ip -n "$tag-$host" addr add "10.99.0.$((host + 1))/24" dev eth0
    ip -n "$tag-$host" link set eth0 up
    ip -n "$tag-$host" link set lo up
    echo "00000000-0000-4000-8000-00000000000$host" >"$folder/boot$host"
  done
}

# start HOST NAME WORDS...: an agent on a host; its pid is in $started.
start() {
  local host=$1 name=$2
  shift 2
  mkdir -p "$folder/$name"
  # shellcheck disable=SC2016
  (cd "$folder/$name" && TMPDIR=/tmp exec ip netns exec "$tag-$host" unshare --pid --fork --kill-child --mount-proc bash -c \
    'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"' _ "$folder/boot$host" \
    "$gradring" launch --rdzv-id nodes-check "$@") \
    >"$folder/$name.out" 2>"$folder/$name.err" &
  started=$!
  agents+=("$started")
}

# expect CODE PID WHAT: waits for an agent's end.
expect() {
  local code=0
  wait "$2" || code=$?
  [[ $code == "$1" ]] || fail "$3 returned $code, not $1"
}

# wait_for WHAT COMMAND...: until the command succeeds.
wait_for() {
  local what=$1
  shift
  for ((i = 0; i < 1200; ++i)); do
    if "$@" 2>/dev/null; then return; fi
    sleep 0.05
  done
  fail "$what never came"
}

# weights NAME: of the training in that folder, which has ended; a text that equals no other if it has none.
weights() { grep -oE '"parameters_sha256": *"[0-9a-f]{64}"' "$folder/$1/run/summary.json" || echo "no weights of $1"; }

trains() {
  local ranks=(2 1 1) pids=() training=(train --steps 20 --batch-size 16 --threads 1 --progress none --device "$device" --precision fp32
    --run-dir run)
  for host in 0 1 2; do
    start "$host" "train$host" --nnodes 3 --node-rank "$host" --nproc-per-node "${ranks[host]}" --master-addr 10.99.0.1 "${training[@]}"
    pids+=("$started")
  done
  for pid in "${pids[@]}"; do expect 0 "$pid" "training over three hosts"; done
  mkdir "$folder/one"
  (cd "$folder/one" && "$gradring" launch --nproc-per-node 4 "${training[@]}") || fail "training on one host"
  [[ $(weights train0) == "$(weights one)" ]] || fail "three hosts came to other weights than one"
  echo "trained over 3 hosts with 2, 1 and 1 ranks: the same weights as on one"
}

# loses_a_rank RANK: every agent returns the killed rank's code, the leader says so and that others lost a peer, and a rank names it.
# How many others the leader still hears of, before it stops them all, depends on the machine, and so does which rank has the time to say it.
loses_a_rank() {
  local ranks=(2 1 1) pids=() name=lost$1
  for host in 0 1 2; do
    start "$host" "$name-$host" --nnodes 3 --node-rank "$host" --nproc-per-node "${ranks[host]}" --master-addr 10.99.0.1 \
      train --steps 2000 --batch-size 16 --threads 1 --progress none --device "$device" --precision fp32 --run-dir run --timeout 10s \
      --inject "kill:rank=$1,step=5"
    pids+=("$started")
  done
  for pid in "${pids[@]}"; do expect 137 "$pid" "an agent whose run lost rank $1"; done
  grep -qE "rank $1 of 4 .* was killed by signal 9 .*\(ranks? [0-3](, [0-3])* lost a peer\)" "$folder/$name-0.err" ||
    fail "the leader did not say that rank $1 was killed, and that others lost a peer"
  grep -q "training ended: .*rank $1 (process" "$folder/$name"-[012]/run/logs/rank_*.log ||
    fail "no rank named rank $1: $(tail -qn 1 "$folder/$name"-[012]/run/logs/rank_*.log)"
  echo "rank $1 killed: every agent returned 137, and a rank named it"
}

# The first attempt pauses in its middle, so that what happens to hosts happens then.
elastic_training=(train --reproducible --global-batch 32 --batch-size 8 --steps 60 --save-every-steps 5 --resume auto --timeout 8s
  --threads 1 --progress none --device "$device" --precision fp32 --run-dir run --inject "delay:rank=0,step=21,ms=4000")
elastic_options=(--rdzv-backend c10d --rdzv-endpoint 10.99.0.1:29400 --rdzv-conf 'last_call_timeout=2,join_timeout=60'
  --kill-grace 15)

trains_undisturbed() {
  mkdir "$folder/whole"
  (cd "$folder/whole" && "$gradring" launch --nproc-per-node 4 "${elastic_training[@]}" 2>/dev/null) || fail "training undisturbed"
}

# expect_training NAME RANKS: it came to the undisturbed one's weights, in the end by so many ranks.
expect_training() {
  grep -q "\"world_size\": *$2\b" "$folder/$1/run/summary.json" || fail "the training did not end with $2 ranks"
  [[ $(weights "$1") == "$(weights whole)" ]] || fail "the training came to other weights than the undisturbed one"
}

loses_a_host() {
  local ranks=(2 1 1) pids=()
  for host in 0 1 2; do
    start "$host" "cut$host" --nnodes 1:3 --node-rank "$host" --nproc-per-node "${ranks[host]}" "${elastic_options[@]}" "${elastic_training[@]}"
    pids+=("$started")
  done
  wait_for "step 20 of three hosts" test -e "$folder/cut0/run/checkpoints/step-20"
  local begin end
  begin=$(date +%s.%N)
  ip -n "$tag-2" link set eth0 down
  wait_for "the rest's next step" grep -q "resumes after step" "$folder/cut0/run/logs/rank_0.log"
  end=$(date +%s.%N)
  expect 0 "${pids[0]}" "the leader after the loss of a host"
  expect 0 "${pids[1]}" "the second host after the loss of the third"
  expect_training cut0 3
  expect 161 "${pids[2]}" "the lost host"
  ip -n "$tag-2" link set eth0 up
  awk -v a="$begin" -v b="$end" 'BEGIN {printf "one of 3 hosts cut off: the rest went on from the last checkpoint %.1f s later, to the same weights\n", b - a}'
}

takes_a_host_in() {
  start 0 late0 --nnodes 1:2 --nproc-per-node 2 "${elastic_options[@]}" "${elastic_training[@]}"
  local leader=$started
  wait_for "step 20 of one host" test -e "$folder/late0/run/checkpoints/step-20"
  start 1 late1 --nnodes 1:2 --nproc-per-node 1 "${elastic_options[@]}" "${elastic_training[@]}"
  expect 0 "$started" "the late host"
  expect 0 "$leader" "the leader with a late host"
  expect_training late0 3
  echo "a host that came later was taken in; to the same weights"
}

make_hosts
trains
loses_a_rank 1 # beside rank 0
loses_a_rank 3 # alone on its host
trains_undisturbed
loses_a_host
takes_a_host_in
