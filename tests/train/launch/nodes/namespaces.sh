# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests whose hosts are network namespaces with an /etc/hosts each.
set -euo pipefail

# enter_namespaces "$@": runs the script again as root of namespaces of its own, which need no cleanup, and makes the folder
# $folder; where that is refused, says why and exits with 77, which ctest takes as skipped.
enter_namespaces() {
  if [[ -n ${IN_NAMESPACES-} ]]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    export folder XDG_RUNTIME_DIR=$folder TMPDIR=$folder
    return
  fi
  local namespaces=(unshare --net --mount --uts) refused
  ((EUID == 0)) || namespaces+=(--user --map-root-user)
  # shellcheck disable=SC2016
  if ! refused=$("${namespaces[@]}" bash -c \
    'ip link set lo up && hostname probe && ip link add veth0 type veth peer name veth1 && mount --bind /etc/hosts /etc/hosts' 2>&1); then
    echo "skipped: needs unshare (util-linux), ip (iproute2), and the right to make namespaces: ${refused//$'\n'/; }"
    exit 77
  fi
  IN_NAMESPACES=1 exec "${namespaces[@]}" bash "$0" "$@"
}

# use_hosts FILE: names are looked up in that file only.
use_hosts() {
  echo 'hosts: files' >"$folder/nsswitch.conf"
  mount --bind "$1" /etc/hosts
  mount --bind "$folder/nsswitch.conf" /etc/nsswitch.conf
}

# expect CODE PID WHAT: waits for an agent's end.
expect() {
  local code=0
  wait "$2" || code=$?
  if [[ $code == "$1" ]]; then return; fi
  echo "$3 returned $code, expected $1" >&2
  tail -n 20 "$folder"/*.err >&2
  exit 1
}

# says FILE TEXT: the file of this test holds that text.
says() {
  if grep -qF -- "$2" "$folder/$1"; then return; fi
  echo "$1 has no '$2':" >&2
  cat "$folder/$1" >&2
  exit 1
}
