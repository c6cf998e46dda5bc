#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts a and b, of which each knows its own name as 127.0.1.1, as Debian writes it in /etc/hosts: node 0 listens
# where the others reach it, and all ranks have addresses that others reach.
#
# Usage: two_hosts.sh GRADRING
# shellcheck source=tests/train/launch/nodes/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
enter_namespaces "$@"
gradring=$1

make_hosts 2
export GRADRING_TOKEN=00112233445566778899aabbccddeeff

# start HOST NAME WORDS...: an agent on a host; its pid is in $started.
start() {
  local host=$1 name=$2
  shift 2
  mkdir -p "$folder/$name"
  (
    cd "$folder/$name"
    enter_host "$host" "$gradring" launch --rdzv-conf timeout=20,last_call_timeout=1 "$@"
  ) >"$folder/$name.out" 2>"$folder/$name.err" &
  started=$!
}

# runs ADDRESSES WHAT HOST:OPTIONS...: an agent for each HOST:OPTIONS; all end well, and the addresses of their workers
# are these.
# shellcheck disable=SC2016
runs() {
  local addresses=$1 what=$2 pids=() agent number=0
  shift 2
  rm -f "$folder"/*.out
  for agent in "$@"; do
    # shellcheck disable=SC2086
    start "${agent%%:*}" "agent$number" ${agent#*:} -- sh -c 'echo $GRADRING_NODE_ADDRESS'
    pids+=("$started")
    number=$((number + 1))
  done
  for pid in "${pids[@]}"; do expect 0 "$pid" "an agent ($what)"; done
  local found
  found=$(sort "$folder"/*.out | tr '\n' ' ')
  [[ $found == "$addresses " ]] || { echo "$what: the workers' addresses are $found, expected $addresses" >&2; exit 1; }
}

runs '10.77.0.1 10.77.0.1 10.77.0.2' 'the name of node 0 is 127.0.1.1 on its host, which has another node' \
  'a:--nnodes 3 --node-rank 0 --master-addr a' 'a:--nnodes 3 --node-rank 1 --master-addr a' \
  'b:--nnodes 3 --node-rank 2 --master-addr a'
runs '10.77.0.1 10.77.0.2' 'node 0 is told localhost, as by the PyTorchJob operator' \
  'a:--nnodes 2 --node-rank 0 --master-addr localhost' 'b:--nnodes 2 --node-rank 1 --master-addr a'
runs '10.77.0.1 10.77.0.2' 'c10d: the host of the endpoint leads' \
  'a:--nnodes 2 --rdzv-backend c10d --rdzv-endpoint a:29400' 'b:--nnodes 2 --rdzv-backend c10d --rdzv-endpoint a:29400'
runs 'fd77::1 fd77::2' 'IPv6' 'a:--nnodes 2 --node-rank 0 --master-addr a' 'b:--nnodes 2 --node-rank 1 --master-addr a6'
runs '10.77.0.1 10.77.0.2' 'nothing answers at one of two addresses' \
  'a:--nnodes 2 --node-rank 0 --master-addr a' 'b:--nnodes 2 --node-rank 1 --master-addr both'
runs '10.77.0.1 10.77.0.2' '--local-addr is the own name, 127.0.1.1' \
  'a:--nnodes 2 --node-rank 0 --master-addr a --local-addr a' 'b:--nnodes 2 --node-rank 1 --master-addr a --local-addr b'

# With is_host, the host of the endpoint need not know it as its own.
runs '10.77.0.1 10.77.0.2' 'is_host' \
  'a:--nnodes 2 --rdzv-backend c10d --rdzv-endpoint b:29400 --rdzv-conf is_host=1,last_call_timeout=1' \
  'b:--nnodes 2 --rdzv-backend c10d --rdzv-endpoint a:29400 --rdzv-conf is_host=0,last_call_timeout=1'

# --listen restricts: host b cannot connect.
start a listening --nnodes 2 --node-rank 0 --master-addr a --listen 127.0.0.1 --rdzv-conf timeout=1 -- true
leader=$started
start b refused --nnodes 2 --node-rank 1 --master-addr a --rdzv-conf timeout=1 -- true
expect 3 "$started" "a node that cannot connect"
expect 3 "$leader" "a leader that nobody reaches"
says refused.err '10.77.0.1:29500: Connection refused'
says listening.err 'listening at 127.0.0.1:29500'

# Ranks train over these addresses.
training=(train --dataset digits --steps 3 --batch-size 8 --threads 1 --progress none --run-dir run)
start a trains0 --nnodes 2 --node-rank 0 --master-addr a "${training[@]}"
leader=$started
start b trains1 --nnodes 2 --node-rank 1 --master-addr a "${training[@]}"
expect 0 "$started" "a training on host b"
expect 0 "$leader" "a training on host a"
