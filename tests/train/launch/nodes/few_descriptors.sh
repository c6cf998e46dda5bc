#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A leader that may open 64 files, where nobody authenticates 100 connections: it drops the oldest ones, starts its
# workers, starts them again, and lets a node join. No limit is raised: the hard one is 64, too.
# Then worlds that need more.
#
# Usage: few_descriptors.sh GRADRING
# shellcheck source=tests/train/launch/nodes/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
enter_namespaces "$@"
gradring=$1
ip link set lo up
floods=()
trap 'kill "${floods[@]}" 2>/dev/null; rm -rf "$folder"' EXIT

# start NODE: an agent with two workers, of which the first attempt fails; its pid is in $started.
start() {
  # shellcheck disable=SC2016
  (
    cd "$folder"
    ulimit -n 64
    exec "$gradring" launch --nnodes 2 --node-rank "$1" --master-addr 127.0.0.1 --nproc-per-node 2 -t 3 --log-dir "logs$1" \
      --max-restarts 1 --rdzv-conf timeout=20 -- bash -c '
        echo "attempt $TORCHELASTIC_RESTART_COUNT"
        [[ $TORCHELASTIC_RESTART_COUNT == 1 ]] || sleep 0.3
        [[ $TORCHELASTIC_RESTART_COUNT == 1 || $RANK != 0 ]]'
  ) >"$folder/$1.out" 2>"$folder/$1.err" &
  started=$!
}

start 0
leader=$started
for ((i = 0; i < 1000; ++i)); do
  if grep -q 'waiting for node 1' "$folder/0.err"; then break; fi
  sleep 0.02
done
# flood NUMBER: connections that stay open and send nothing.
flood() {
  # shellcheck disable=SC2034
  for ((i = 0; i < 100; ++i)); do exec {connection}<>/dev/tcp/127.0.0.1/29500; done
  : >"$folder/flooded$1"
  exec sleep 60
}
flood 1 &
floods+=("$!")
for ((i = 0; i < 1000; ++i)); do
  if [[ -e $folder/flooded1 ]]; then break; fi
  sleep 0.02
done
start 1
flood 2 &
floods+=("$!")
expect 0 "$leader" "the leader"
expect 0 "$started" "the other agent"
says 0.out '[default1]:attempt 1'
says 1.out '[default1]:attempt 1'

# rejects USER COMMAND...: too few files for the world, which is an error before ranks connect.
rejects() {
  local user=$1
  shift
  (ulimit -n 64 && XDG_RUNTIME_DIR=$folder exec "$@") >"$folder/world.out" 2>"$folder/world.err" &
  expect 3 "$!" "$user"
  says world.err "$user needs "
  says world.err 'raise it to '
}
export RANK=0 WORLD_SIZE=24 LOCAL_RANK=0
rejects 'a rank of a world of 24' env LOCAL_WORLD_SIZE=24 "$gradring" bench allreduce --comm shm
rejects 'a rank of a world of 24' env LOCAL_WORLD_SIZE=24 "$gradring" bench allreduce --comm tcp
rejects 'rank 0 of a world of 24' env LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.2 GRADRING_TOKEN=secret-of-the-world "$gradring" bench allreduce
unset RANK WORLD_SIZE LOCAL_RANK
rejects 'the launcher of 40 processes' "$gradring" launch --nproc-per-node 40 -- true

# Another port would not help rank 0.
(
  cd "$folder"
  ulimit -n 16
  RANK=0 WORLD_SIZE=2 MASTER_ADDR=192.0.2.1 MASTER_PORT=29500 GRADRING_TOKEN=secret-of-the-world exec "$gradring" train --dataset digits
) >"$folder/store.out" 2>"$folder/store.err" &
expect 3 "$!" 'rank 0 with 16 files'
says store.err 'raise it to '
if grep -qF GRADRING_RENDEZVOUS_PORT "$folder/store.err"; then cat "$folder/store.err"; exit 1; fi
