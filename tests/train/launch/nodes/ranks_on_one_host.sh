#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on one host without any launcher of ours, in a namespace of their own: the faults of docs/clusters.md, "When
# something fails", with MASTER_ADDR=127.0.0.1. Prints a line for each.
#
# Usage: ranks_on_one_host.sh GRADRING [SECONDS]   by how much rank 0 is late: default 1
# shellcheck source=tests/train/launch/nodes/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
enter_namespaces "$@"
gradring=$(realpath "$1")
delay=${2:-1}
make_hosts 1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2 GRADRING_TOKEN=
training=(train --dataset digits --steps 12 --batch-size 16 --device cpu --threads 1 --progress none --timeout 30s)

# has_joined RANK: a rank of the only run has found rank 0. 10 s at most.
has_joined() {
  local i
  for ((i = 0; i < 500; ++i)); do
    if compgen -G "$folder/gradring-meet-*/store/key-process%2f$1" >/dev/null; then return; fi
    sleep 0.02
  done
}

begin 'two ranks, no token'
start a 0; zero=$started
start a 1; one=$started
ends 0 "$zero" 0 "$one"

begin 'short token'
GRADRING_TOKEN=fifteen-letters start a 0; zero=$started
GRADRING_TOKEN=fifteen-letters start a 1; one=$started
ends 2 "$zero" 2 "$one"
says rank1.err 'GRADRING_TOKEN: the token has 15 characters, expected 16 or more'

begin 'token file that others can read'
echo a-token-of-more-than-sixteen-letters >"$folder/token"
chmod 644 "$folder/token"
start a 0 --timeout 2s; zero=$started
GRADRING_TOKEN_FILE=$folder/token start a 1; one=$started
ends 2 "$one" 162 "$zero"
says rank1.err 'has mode 0644'

begin 'another token'
GRADRING_TOKEN=token-of-sixteen-letters-and-more start a 0 --timeout 3s; zero=$started
GRADRING_TOKEN=another-token-of-sixteen-letters start a 1 --timeout 2s; one=$started
ends 3 "$one" 162 "$zero"
says rank1.err "with another GRADRING_TOKEN (process $zero, run directory $folder/run)"

begin 'another run directory'
start a 0 --timeout 3s; zero=$started
start a 1 --timeout 2s --run-dir "$folder/another"; one=$started
ends 3 "$one" 162 "$zero"
says rank1.err "process $one, run directory $folder/another"
says rank1.err "process $zero, run directory $folder/run"
says rank1.err GRADRING_RENDEZVOUS_PORT

begin 'late rank 0'
start a 1; one=$started
pause
start a 0; zero=$started
ends 0 "$zero" 0 "$one"

begin 'no rank 0'
start a 1 --timeout 2s; one=$started
ends 162 "$one"
says rank1.err 'rank 1 of 2 waited for rank 0, which did not connect'

begin 'no rank 1'
start a 0 --timeout 2s; zero=$started
ends 162 "$zero"
says rank0.err 'for rank 1 of a world of 2 to join'

begin 'rank 0 dies at the rendezvous'
WORLD_SIZE=3 start a 0; zero=$started
WORLD_SIZE=3 start a 1; one=$started
has_joined 1
kill -9 "$zero"
ends 161 "$one" 137 "$zero"
says rank1.err 'rank 1 lost rank 0, which ended while the ranks joined'

begin 'rank 0 is stopped at the rendezvous'
WORLD_SIZE=3 start a 0; zero=$started
WORLD_SIZE=3 start a 1 --timeout 3s; one=$started
has_joined 1
kill -STOP "$zero"
WORLD_SIZE=3 start a 2 --timeout 3s; two=$started
ends 162 "$one" 162 "$two"
kill -9 "$zero"
{ wait "$zero" || true; } 2>/dev/null

begin 'a rank dies at the rendezvous'
WORLD_SIZE=3 start a 0 --timeout 2s; zero=$started
WORLD_SIZE=3 start a 1; one=$started
has_joined 1
kill -9 "$one"
ends 137 "$one" 162 "$zero"

begin 'two processes of one rank'
WORLD_SIZE=3 start a 0; zero=$started
WORLD_SIZE=3 start a 1; one=$started
has_joined 1
LOG=later.err WORLD_SIZE=3 start a 1; later=$started
ends 3 "$later"
WORLD_SIZE=3 start a 2; two=$started
ends 0 "$zero" 0 "$one" 0 "$two"
says later.err "another process has joined the run of rank 0 (process $zero, run directory $folder/run) as this rank"

begin 'two processes of rank 0'
WORLD_SIZE=3 start a 0; zero=$started
WORLD_SIZE=3 start a 1; one=$started
has_joined 1
LOG=later.err WORLD_SIZE=3 start a 0; later=$started
ends 3 "$later"
WORLD_SIZE=3 start a 2; two=$started
ends 0 "$zero" 0 "$one" 0 "$two"
says later.err "another run on this host (process $zero, run directory $folder/run) uses the run id 'none' and the port 29500"

begin 'other options'
start a 0; zero=$started
start a 1 --lr 0.5; one=$started
ends 163 "$zero" 163 "$one"
for text in "process $zero, run directory $folder/run" "process $one, run directory $folder/run" GRADRING_RENDEZVOUS_PORT; do
  says rank0.err "$text"
  says rank1.err "$text"
done

begin 'a rank dies'
start a 0 --inject kill:rank=1,step=5; zero=$started
start a 1 --inject kill:rank=1,step=5; one=$started
ends 137 "$one" 161 "$zero"

begin 'a rank is stopped'
start a 0 --steps 100000 --timeout 3s; zero=$started
start a 1 --steps 100000 --timeout 3s; one=$started
pause
kill -STOP "$one"
ends 162 "$zero"
kill -9 "$one"
{ wait "$one" || true; } 2>/dev/null

# Ranks of the other job come first and last.
for round in 1 2 3; do
  begin "two jobs at one port, start $round"
  LOG=second1.err start a 1 --run-dir "$folder/second" --lr 0.5; second_one=$started
  start a 0; zero=$started
  LOG=second0.err start a 0 --run-dir "$folder/second" --lr 0.5; second_zero=$started
  start a 1; one=$started
  ends 0 "$zero" 0 "$one" 0 "$second_zero" 0 "$second_one"
  rm -rf "$folder/second"
done

[[ -z $(ss -Hltn) ]] || { ss -ltn >&2; exit 1; }
