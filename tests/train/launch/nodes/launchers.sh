# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by tests that start ranks on hosts of make_hosts with other launchers: srun, mpirun (Open MPI), mpich, torchrun.
export GRADRING_TOKEN=00112233445566778899aabbccddeeff
training=(train --dataset digits --steps 12 --global-batch 32 --shard-size 8 --reproducible --seed 3 --device cpu --threads 1
  --progress none)
launcher_options=()

# weights NAME: of the training in that folder.
weights() { grep -oE '"parameters_sha256": *"[0-9a-f]{64}"' "$folder/$1/summary.json" || echo "no weights of $1"; }

# same_weights NAME: as of the run "own".
same_weights() {
  [[ $(weights "$1") == "$(weights own)" ]] || { echo "$1: $(weights "$1"), expected $(weights own)" >&2; exit 1; }
}

# need PROGRAM PACKAGE
need() {
  if ! command -v "$1" >/dev/null; then
    echo "skipped: there is no $1 ($2)"
    exit 77
  fi
}

# need_launcher LAUNCHER: ends the test as skipped where it is not installed.
need_launcher() {
  local program
  case $1 in
    srun) for program in srun slurmctld slurmd munged; do need "$program" 'Debian: slurmctld, slurmd, slurm-client, munge'; done ;;
    mpirun) need mpirun.openmpi 'Debian: openmpi-bin' ;;
    mpich) need mpiexec.mpich 'Debian: mpich' ;;
    torchrun) need torchrun 'PyTorch' ;;
  esac
  if [[ $1 == srun && -z ${IN_NAMESPACES-} ]] && { ((EUID != 0)) || ! grep -q 4294967295 /proc/self/uid_map; }; then
    echo 'skipped: slurmd needs to be root'
    exit 77
  fi
}

# start_launcher LAUNCHER HOSTS: what it needs on these hosts before it can start ranks.
start_launcher() {
  case $1 in
    srun) start_slurm "$2" ;;
    mpirun | mpich) write_agent ;;
  esac
}

# write_agent: what mpirun and mpiexec start their daemons with, in place of ssh HOST COMMAND.
write_agent() {
  cat >"$folder/agent" <<AGENT
#!/usr/bin/env bash
source "$here/namespaces.sh"
[[ \$1 != -x ]] || shift
host=\$1
shift
enter_host "\${host%6}" bash -c "\$*"
AGENT
  chmod +x "$folder/agent"
}

# start_slurm HOSTS: munge, the controller on host a, and a daemon on each.
start_slurm() {
  local number host names='' i
  export SLURM_CONF=$folder/slurm.conf
  mkdir "$folder/state"
  cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=a($(address_of 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
${only_ipv6:+CommunicationParameters=EnableIPv6,DisableIPv4}
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
KillWait=8
CONF
  head -c 1024 /dev/urandom >"$folder/munge.key"
  chmod 400 "$folder/munge.key"
  munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munge.pid" \
    --log-file="$folder/munge.err" --seed-file="$folder/munge.seed" >/dev/null 2>&1 &
  for ((number = 1; number <= $1; ++number)); do
    host=$(host_name "$number")
    names+=${names:+,}$host
    mkdir "$folder/spool.$host"
    echo "NodeName=$host NodeAddr=$(address_of "$number") NodeHostname=$host CPUs=2 State=UNKNOWN" >>"$SLURM_CONF"
  done
  echo "PartitionName=all Nodes=$names Default=YES State=UP" >>"$SLURM_CONF"
  enter_host a slurmctld -D >"$folder/slurmctld.err" 2>&1 &
  for host in ${names//,/ }; do enter_host "$host" slurmd -D -N "$host" >"$folder/slurmd.$host.err" 2>&1 & done
  for ((i = 0; i < 300; ++i)); do
    if [[ $(sinfo --noheader --states=idle --format=%D 2>/dev/null) == "$1" ]]; then break; fi
    sleep 0.1
  done
}

# launch LAUNCHER HOSTS RANKS COMMAND...: replaces this shell by the launcher, which runs the command as so many ranks on each
# of so many hosts. More options for it are in $launcher_options. torchrun: starts one on each host, and waits for them.
# mpich does not say where rank 0 is: on $master, a by default.
launch() {
  local launcher=$1 hosts=$2 ranks=$3 list='' number
  local world=$((hosts * ranks))
  shift 3
  for ((number = 1; number <= hosts; ++number)); do list+=${list:+,}$(host_name "$number"); done
  case $launcher in
    srun) enter_host a srun --nodes "$hosts" --ntasks-per-node "$ranks" "${launcher_options[@]}" "$@" ;;
    mpirun)
      enter_host a mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include v \
        -x GRADRING_TOKEN --host "${list//,/:$ranks,}:$ranks" -np "$world" "${launcher_options[@]}" "$@"
      ;;
    mpich)
      enter_host a mpiexec.mpich -launcher ssh -launcher-exec "$folder/agent" -hosts "$list" -ppn "$ranks" -n "$world" \
        -genv MASTER_ADDR "${master-a}" "${launcher_options[@]}" "$@"
      ;;
    torchrun)
      local pids=() host
      for host in ${list//,/ }; do
        torchrun_on "$host" "$hosts" "$ranks" "$@" &
        pids+=("$!")
      done
      wait "${pids[@]}"
      ;;
  esac
}

# torchrun_on HOST HOSTS RANKS COMMAND...: replaces this shell by one of the agents of launch.
torchrun_on() {
  local host=$1 hosts=$2 ranks=$3
  shift 3
  enter_host "$host" torchrun --nnodes "$hosts" --nproc-per-node "$ranks" --rdzv-backend c10d --rdzv-endpoint a:29400 \
    --rdzv-id test "${launcher_options[@]}" --no-python "$@" >>"$folder/torchrun.$host.err" 2>&1
}
