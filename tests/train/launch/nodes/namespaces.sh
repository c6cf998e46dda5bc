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

# make_two_hosts: this namespace becomes host a, 10.77.0.1 and fd77::1; host b has 10.77.0.2 and fd77::2, and the network
# and UTS namespace of the process $other. Nothing answers at 10.77.0.9. Each knows its own name as 127.0.1.1, as Debian
# writes it in /etc/hosts: $folder/hosts.a and $folder/hosts.b.
make_two_hosts() {
  unshare --net --uts sleep 1000 &
  other=$!
  export other
  trap 'kill "$other"; rm -rf "$folder"' EXIT
  for ((i = 0; i < 500; ++i)); do
    if [[ $(readlink "/proc/$other/ns/net") != "$(readlink /proc/self/ns/net)" ]]; then break; fi
    sleep 0.01
  done
  hostname a
  nsenter --target "$other" --uts hostname b
  ip link add v type veth peer name v netns "$other"
  configure_host 1
  configure_host 2 nsenter --target "$other" --net
  printf '127.0.0.1 localhost\n127.0.1.1 a\n10.77.0.2 b\n' >"$folder/hosts.a"
  printf '127.0.0.1 localhost\n127.0.1.1 b\n10.77.0.1 a\nfd77::1 a6\n10.77.0.9 both\n10.77.0.1 both\n' >"$folder/hosts.b"
}

# configure_host NUMBER COMMAND...: the addresses of a host, which COMMAND enters.
configure_host() {
  local number=$1
  shift
  "$@" ip link set lo up
  "$@" ip addr add "10.77.0.$number/24" dev v
  "$@" ip addr add "fd77::$number/64" dev v nodad
  "$@" ip link set v up
  "$@" ip neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev v nud permanent
}

# enter_host HOST COMMAND...: replaces this shell by the command, on host a or b.
enter_host() {
  local host=$1 enter=()
  shift
  [[ $host == a ]] || enter=(nsenter --target "$other" --net --uts)
  # shellcheck disable=SC2016
  exec "${enter[@]}" unshare --mount bash -c 'source "$1"; use_hosts "$folder/hosts.$2"; shift 2; exec "$@"' \
    _ "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/namespaces.sh" "$host" "$@"
}

# expect CODE PID WHAT: waits for an agent's end.
expect() {
  local code=0
  { wait "$2" || code=$?; } 2>/dev/null # bash would report a killed one
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
