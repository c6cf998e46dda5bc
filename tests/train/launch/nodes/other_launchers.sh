#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on two hosts that another launcher starts, without one of ours: they train to the weights of our launcher's run.
#
# Usage: other_launchers.sh GRADRING LAUNCHER   srun, mpirun (Open MPI), mpich or torchrun
# shellcheck source=tests/train/launch/nodes/namespaces.sh
source "$(dirname "$0")/namespaces.sh"

# need PROGRAM PACKAGE
need() {
  if ! command -v "$1" >/dev/null; then
    echo "skipped: there is no $1 ($2)"
    exit 77
  fi
}
case $2 in
  srun) for program in srun slurmctld slurmd munged; do need "$program" 'Debian: slurmctld, slurmd, slurm-client, munge'; done ;;
  mpirun) need mpirun.openmpi 'Debian: openmpi-bin' ;;
  mpich) need mpiexec.mpich 'Debian: mpich' ;;
  torchrun) need torchrun 'PyTorch' ;;
esac
if [[ $2 == srun ]] && { ((EUID != 0)) || ! grep -q 4294967295 /proc/self/uid_map; }; then
  echo 'skipped: slurmd needs to be root'
  exit 77
fi
enter_namespaces "$@"
gradring=$(realpath "$1")
make_two_hosts
daemons=()
trap 'kill "$other" "${daemons[@]}" 2>/dev/null; wait; rm -rf "$folder"' EXIT
export GRADRING_TOKEN=00112233445566778899aabbccddeeff
training=(train --dataset digits --steps 12 --global-batch 32 --shard-size 8 --reproducible --seed 3 --device cpu --threads 1
  --progress none)

# weights NAME: of the training in that folder.
weights() { grep -oE '"parameters_sha256": *"[0-9a-f]{64}"' "$folder/$1/summary.json" || echo "no weights of $1"; }

# at HOST COMMAND...: runs it there.
at() { (enter_host "$@"); }

# What mpirun and mpiexec start their daemons with, in place of ssh HOST COMMAND.
cat >"$folder/agent" <<AGENT
#!/usr/bin/env bash
source "$(dirname "$(realpath "$0")")/namespaces.sh"
[[ \$1 != -x ]] || shift
shift
enter_host b bash -c "\$*"
AGENT
chmod +x "$folder/agent"

run_srun() {
  cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=a(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
NodeName=a NodeAddr=10.77.0.1 NodeHostname=a CPUs=1 State=UNKNOWN
NodeName=b NodeAddr=10.77.0.2 NodeHostname=b CPUs=1 State=UNKNOWN
PartitionName=all Nodes=a,b Default=YES State=UP
CONF
  export SLURM_CONF=$folder/slurm.conf
  mkdir "$folder/state" "$folder/spool.a" "$folder/spool.b"
  head -c 1024 /dev/urandom >"$folder/munge.key"
  chmod 400 "$folder/munge.key"
  munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munge.pid" \
    --log-file="$folder/munge.err" --seed-file="$folder/munge.seed" &
  daemons+=("$!")
  enter_host a slurmctld -D >"$folder/slurmctld.err" 2>&1 &
  daemons+=("$!")
  for host in a b; do
    enter_host "$host" slurmd -D -N "$host" >"$folder/slurmd.$host.err" 2>&1 &
    daemons+=("$!")
  done
  for ((i = 0; i < 300; ++i)); do
    if [[ $(sinfo --noheader --states=idle --format=%D 2>/dev/null) == 2 ]]; then break; fi
    sleep 0.1
  done
  at a timeout 60 srun --nodes 2 --ntasks-per-node 1 "$gradring" "${training[@]}" --run-dir "$folder/run"
}

run_mpirun() {
  at a timeout 60 mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include v \
    -x GRADRING_TOKEN --host 10.77.0.1,10.77.0.2 -np 2 "$gradring" "${training[@]}" --run-dir "$folder/run"
}

run_mpich() {
  at a timeout 60 mpiexec.mpich -launcher ssh -launcher-exec "$folder/agent" -hosts a,b -n 2 -genv MASTER_ADDR a \
    "$gradring" "${training[@]}" --run-dir "$folder/run"
}

# Two ranks a host.
run_torchrun() {
  local pids=()
  for host in a b; do
    enter_host "$host" timeout 100 torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint a:29400 --rdzv-id test \
      --no-python "$gradring" "${training[@]}" --run-dir "$folder/run" >"$folder/$host.err" 2>&1 &
    pids+=("$!")
  done
  wait "${pids[0]}" && wait "${pids[1]}"
}

"$gradring" launch --nproc-per-node 2 "${training[@]}" --run-dir "$folder/own" >/dev/null
if ! "run_$2" >"$folder/launcher.err" 2>&1; then
  tail -n 20 "$folder"/*.err >&2
  exit 1
fi
[[ $(weights run) == "$(weights own)" ]] || { echo "$2: $(weights run), expected $(weights own)" >&2; exit 1; }
echo "$2: two hosts came to the weights of one"
