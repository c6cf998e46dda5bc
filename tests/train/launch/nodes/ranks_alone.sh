#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on two hosts without any launcher of ours: faults at the rendezvous and in the training. Prints a line for each.
#
# Usage: ranks_alone.sh GRADRING [SECONDS]   by how much rank 0 and a name are late: default 2
# shellcheck source=tests/train/launch/nodes/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
enter_namespaces "$@"
gradring=$(realpath "$1")
delay=${2:-2}
make_hosts 3
export GRADRING_TOKEN=00112233445566778899aabbccddeeff MASTER_PORT=29500 WORLD_SIZE=2
training=(train --dataset digits --steps 12 --global-batch 32 --shard-size 8 --reproducible --seed 3 --device cpu --threads 1
  --progress none --timeout 30s)

# wait_for STATE: a socket of the store on host a is in that state: listening or established. 10 s at most.
wait_for() {
  local i
  for ((i = 0; i < 500; ++i)); do
    if [[ -n $(ss -Htn state "$1" 'sport = :29500') ]]; then return; fi
    sleep 0.02
  done
}

begin 'two ranks'
start a 0; zero=$started
start b 1; one=$started
ends 0 "$zero" 0 "$one"

begin 'three hosts over IPv6'
export WORLD_SIZE=3
MASTER_ADDR=fd77::1 start a 0; zero=$started
MASTER_ADDR=a6 start b 1; one=$started
MASTER_ADDR=fd77::1 start c 2; two=$started
ends 0 "$zero" 0 "$one" 0 "$two"
WORLD_SIZE=2

begin 'two ranks on the host of rank 0'
WORLD_SIZE=3 start a 0; zero=$started
WORLD_SIZE=3 start a 1; one=$started
WORLD_SIZE=3 start b 2; two=$started
ends 0 "$zero" 0 "$one" 0 "$two"

begin 'missing token'
GRADRING_TOKEN='' start a 0; zero=$started
GRADRING_TOKEN='' start b 1; one=$started
ends 3 "$zero" 3 "$one"
says rank0.err 'GRADRING_TOKEN is not set'
says rank1.err 'GRADRING_TOKEN is not set'

begin 'another token'
start a 0 --timeout 7s; zero=$started
GRADRING_TOKEN=another-token-of-tests start b 1; one=$started
ends 3 "$one" 162 "$zero"
says rank1.err '10.77.0.1:29500 is rank 0 of another run, or of one with another GRADRING_TOKEN'
says rank0.err 'waited for a rank of another machine to connect to rank 0 at 0.0.0.0:29500'

begin 'late rank 0'
start b 1; one=$started
pause
start a 0; zero=$started
ends 0 "$zero" 0 "$one"

begin 'late rank 0 beside another rank'
WORLD_SIZE=3 start a 1; one=$started
WORLD_SIZE=3 start b 2; two=$started
pause
WORLD_SIZE=3 start a 0; zero=$started
ends 0 "$zero" 0 "$one" 0 "$two"

begin 'rank 0 on another host'
start b 0; zero=$started
start a 1; one=$started
ends 3 "$zero" 3 "$one"
for rank in 0 1; do says "rank$rank.err" 'rank 0 runs on b, but MASTER_ADDR is a, where another rank waits for it'; done

begin 'rank 0 on another host, alone'
start b 0 --timeout 2s; zero=$started
ends 162 "$zero"
says rank0.err 'on b, though MASTER_ADDR=a is no address of its interfaces'

begin 'name that resolves late'
cp "$folder/hosts.b" "$folder/hosts.all"
sed -i '/ a$/d' "$folder/hosts.b"
start a 0; zero=$started
start b 1; one=$started
pause
cat "$folder/hosts.all" >"$folder/hosts.b"
ends 0 "$zero" 0 "$one"

# flood TEXT PAUSE: connections to rank 0, of which 50 at a time are open. Each sends the text with a pause after each
# character, and reads nothing. At the end their number is in the file flood.PID.
flood() {
  local text=$1 pause=$2 open=() count=0 connection i
  trap '' PIPE
  trap 'echo "$count" >"$folder/flood.$$"; exit' TERM
  while true; do
    exec {connection}<>/dev/tcp/a/29500 || { sleep 0.02; continue; }
    count=$((count + 1))
    open+=("$connection")
    for ((i = 0; i < ${#text}; ++i)); do
      printf '%s' "${text:i:1}" >&"$connection" || break
      [[ -z $pause ]] || sleep "$pause"
    done
    ((${#open[@]} > 50)) || continue
    connection=${open[0]}
    exec {connection}>&-
    open=("${open[@]:1}")
  done 2>/dev/null
}

# Connections that send nothing, an invalid frame, the beginning of one, and one of the right length byte by byte.
begin 'floods at the port of the store'
start a 0; zero=$started
export -f flood
floods=()
for words in '' "$(printf '%.0sx' {1..200})" GRADRING "GRADRING$(printf '%.0sx' {1..80}) 0.02"; do
  enter_host c bash -c "set +eu; flood ${words:-\'\'}" &
  floods+=("$!")
done
pause
start b 1; one=$started
ends 0 "$zero" 0 "$one"
kill "${floods[@]}"
for client in "${floods[@]}"; do expect 0 "$client" 'a client'; done
echo "  connections of each client: $(cat "$folder"/flood.* | paste -sd' ')"

begin 'no rank 0'
start b 1 --timeout 2s; one=$started
ends 162 "$one"
says rank1.err 'rank 1 of 2 waited 2.0 s for rank 0 at a:29500: 10.77.0.1:29500: Connection refused'

begin 'no rank 1'
start a 0 --timeout 2s; zero=$started
ends 162 "$zero"

begin 'rank 0 dies at the rendezvous'
WORLD_SIZE=3 start a 0; zero=$started
WORLD_SIZE=3 start b 1; one=$started
wait_for established
pause
kill -9 "$zero"
ends 161 "$one" 137 "$zero"
says rank1.err 'rank 1 lost the store that rank 0 serves at 10.77.0.1:29500'

begin 'a rank dies'
start a 0 --inject kill:rank=1,step=5; zero=$started
start b 1 --inject kill:rank=1,step=5; one=$started
ends 137 "$one" 161 "$zero"

begin 'a rank is stopped'
start a 0 --steps 100000 --timeout 3s; zero=$started
start b 1 --steps 100000 --timeout 3s; one=$started
pause
kill -STOP "$one"
ends 162 "$zero"
kill -9 "$one"
{ wait "$one" || true; } 2>/dev/null

begin 'the network is cut'
start a 0 --steps 100000 --timeout 3s; zero=$started
start b 1 --steps 100000 --timeout 3s; one=$started
pause
ip link set v down
ends 162 "$zero" 162 "$one"
configure_host 1

begin 'taken port, and a second job'
LOG=first.err WORLD_SIZE=3 start a 0 --timeout 9s; zero=$started
wait_for listening
GRADRING_TOKEN=another-token-of-tests start a 0; second=$started
GRADRING_TOKEN=another-token-of-tests WORLD_SIZE=3 start b 1; one=$started
ends 3 "$second" 3 "$one" 162 "$zero"
says rank0.err 'set GRADRING_RENDEZVOUS_PORT, for all ranks, to a port that is free on a'

begin 'two jobs with one token and one port'
LOG=second.err start b 1 --run-dir "$folder/second" --timeout 7s; second=$started
start a 0; zero=$started
sleep 1
start b 1; one=$started
ends 0 "$zero" 0 "$one" 3 "$second"

begin 'ports of their own'
start a 0; zero=$started
LOG=second0.err GRADRING_RENDEZVOUS_PORT=29501 start a 0 --run-dir "$folder/second"; second_zero=$started
LOG=second1.err GRADRING_RENDEZVOUS_PORT=29501 start b 1 --run-dir "$folder/second"; second_one=$started
start b 1; one=$started
ends 0 "$zero" 0 "$one" 0 "$second_zero" 0 "$second_one"

begin 'pods of docs/pytorchjob.yaml'
read -ra training <<<"$(sed -n 's/.*command: \[gradring, \(.*\)\].*/\1/p' "$here/../../../../docs/pytorchjob.yaml" | tr -d ',"')"
((${#training[@]} > 5)) || { echo "found no command in docs/pytorchjob.yaml" >&2; exit 1; }
export KUBERNETES_SERVICE_HOST=10.0.0.1 WORLD_SIZE=4 MASTER_PORT=23456
start a 0; zero=$started
start b 1; one=$started
start c 2; two=$started
start c 3; three=$started
ends 0 "$zero" 0 "$one" 0 "$two" 0 "$three"
grep -q '"ranks":4' "$folder/run/metrics.jsonl"

[[ -z $(ss -Hltn) ]] || { ss -ltn >&2; exit 1; }
