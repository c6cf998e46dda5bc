#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on several hosts that another launcher starts, without one of ours: they train to the weights of our launcher's run.
#
# Usage: other_launchers.sh GRADRING LAUNCHER [FAMILY]   srun, mpirun (Open MPI), mpich or torchrun; ipv4: two hosts, which
#                                                        is the default; ipv6: three that have no IPv4
# shellcheck source=tests/train/launch/nodes/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
# shellcheck source=tests/train/launch/nodes/launchers.sh
source "$here/launchers.sh"
need_launcher "$2"
enter_namespaces "$@"
gradring=$(realpath "$1")
launcher=$2 family=${3-ipv4}
"$gradring" launch --nproc-per-node 2 "${training[@]}" --run-dir "$folder/own" >/dev/null

# compare HOSTS RANKS: so many ranks on each of so many hosts.
compare() {
  local run=$1x$2
  launch "$launcher" "$1" "$2" "$gradring" "${training[@]}" --run-dir "$folder/$run" >"$folder/$run.err" 2>&1 &
  expect 0 "$!" "$launcher"
  same_weights "$run"
  echo "$launcher: $1 x $2 ranks over $family came to the weights of one host"
}

if [[ $family == ipv4 ]]; then
  make_hosts 2
  start_launcher "$launcher" 2
  compare 2 1
  compare 2 2
else
  # MPICH's mpiexec itself listens at IPv4 only.
  if [[ $launcher == mpich ]]; then make_hosts 3; else make_hosts 3 ipv6; fi
  master=a6
  start_launcher "$launcher" 3
  compare 3 1
fi
