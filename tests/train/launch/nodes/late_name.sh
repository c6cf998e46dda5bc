#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A host name gets its address when agents wait for it already, as of pods in Kubernetes: they wait on, and say for what.
#
# Usage: late_name.sh GRADRING
# shellcheck source=tests/train/launch/nodes/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
enter_namespaces "$@"
gradring=$1
ip link set lo up
touch "$folder/hosts"
use_hosts "$folder/hosts"
agents=()

# start RUN OPTIONS...: the two agents of a run, with a worker each.
start() {
  local run=$1 node
  shift
  for node in 0 1; do
    # shellcheck disable=SC2016
    "$gradring" launch --nnodes 2 --node-rank $node --rdzv-conf timeout=30 "$@" -- sh -c 'echo $RANK/$WORLD_SIZE' \
      >"$folder/$run.$node.out" 2>"$folder/$run.$node.err" &
    agents+=("$!")
  done
}

# waits RUN NODE NAME: that agent has said that it waits for the name.
waits() {
  for ((i = 0; i < 1500; ++i)); do
    if grep -q "waiting up to 30 s to .*: cannot resolve the host name '$3'" "$folder/$1.$2.err"; then return; fi
    sleep 0.02
  done
  says "$1.$2.err" "waiting up to 30 s to ...: cannot resolve the host name '$3'"
}

start static --master-addr leader
start ipv6 --master-addr leader6 --master-port 29501
start c10d --rdzv-backend c10d --rdzv-endpoint leader:29400
start listen --master-addr 127.0.0.1 --listen leader --master-port 29502
waits static 1 leader
waits ipv6 1 leader6
waits c10d 0 leader
waits listen 0 leader
printf '127.0.0.1 leader\n::1 leader6\n' >"$folder/hosts"
for agent in "${agents[@]}"; do expect 0 "$agent" "an agent"; done
for run in static ipv6 c10d listen; do
  [[ $(sort "$folder/$run".?.out) == $'0/2\n1/2' ]] || { echo "$run: not two workers" >&2; exit 1; }
  (($(cat "$folder/$run".?.err | grep -c 'cannot resolve') <= 2)) || { echo "$run: more than a line an agent" >&2; exit 1; }
done
