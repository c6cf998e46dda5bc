# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests whose hosts are network namespaces with an /etc/hosts each.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

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
    'ip link set lo up && hostname probe && ip link add veth0 type veth peer name veth1 && ip link add br0 type bridge && mount --bind /etc/hosts /etc/hosts' 2>&1); then
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

# make_hosts COUNT [ipv6]: this namespace becomes host a; b, c, ... have a network and a UTS namespace each. Their
# addresses are 10.77.0.1 and fd77::1, 10.77.0.2 and fd77::2, ..., with ipv6 only those of IPv6. Nothing answers at
# 10.77.0.9. Each knows its own name as 127.0.1.1, as Debian writes it in /etc/hosts: $folder/hosts.a, hosts.b, ...
# At the end all background jobs are killed.
make_hosts() {
  local count=$1 number host other
  only_ipv6=${2-}
  trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$folder"' EXIT
  hostname a
  ip link add v type bridge
  for ((number = 1; number <= count; ++number)); do
    host=$(host_name "$number")
    ((number == 1)) || make_host "$host"
    configure_host "$number"
    for ((other = 1; other <= count; ++other)); do
      if ((other == number)); then echo "127.0.1.1 $host"; else echo "$(address_of "$other") $(host_name "$other")"; fi
      echo "fd77::$other $(host_name "$other")6"
    done >"$folder/hosts.$host"
    echo '127.0.0.1 localhost' >>"$folder/hosts.$host"
  done
  [[ $count == 1 ]] || printf '10.77.0.9 both\n10.77.0.1 both\n' >>"$folder/hosts.b"
}

# host_name NUMBER: 1 is a.
host_name() { local names=abcdef; echo "${names:$1-1:1}"; }

# address_of NUMBER: of that host, as others reach it.
address_of() { if [[ $only_ipv6 ]]; then echo "fd77::$1"; else echo "10.77.0.$1"; fi; }

# make_host NAME: its namespaces are those of the process whose number is in $folder/pid.NAME; its interface v is at the
# bridge v of host a.
make_host() {
  local i pid
  unshare --net --uts sleep 1000 &
  pid=$!
  for ((i = 0; i < 500; ++i)); do
    if [[ $(readlink "/proc/$pid/ns/net") != "$(readlink /proc/self/ns/net)" ]]; then break; fi
    sleep 0.01
  done
  echo "$pid" >"$folder/pid.$1"
  nsenter --target "$pid" --uts hostname "$1"
  ip link add "v$1" type veth peer name v netns "$pid"
  ip link set "v$1" master v up
}

# configure_host NUMBER: the addresses of that host, also after its interface was down.
configure_host() {
  local on=()
  (($1 == 1)) || on=(nsenter --target "$(<"$folder/pid.$(host_name "$1")")" --net)
  "${on[@]}" ip link set lo up
  [[ $only_ipv6 ]] || "${on[@]}" ip addr replace "10.77.0.$1/24" dev v
  "${on[@]}" ip addr replace "fd77::$1/64" dev v nodad
  "${on[@]}" ip link set v up
  "${on[@]}" ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev v nud permanent
}

# enter_host HOST COMMAND...: replaces this shell by the command, on that host.
enter_host() {
  local host=$1 enter=()
  shift
  [[ $host == a ]] || enter=(nsenter --target "$(<"$folder/pid.$host")" --net --uts)
  # shellcheck disable=SC2016
  exec "${enter[@]}" unshare --mount bash -c 'source "$1"; use_hosts "$folder/hosts.$2"; shift 2; exec "$@"' \
    _ "$here/namespaces.sh" "$host" "$@"
}

# at HOST COMMAND...: runs it there.
at() { (enter_host "$@"); }

# expect CODES PID WHAT: waits for the end of a child, 100 s at most. CODES: its exit code, which is then in $code, or several
# as 9|255.
expect() {
  code=0
  timeout 100 tail --pid="$2" -s 0.05 -f /dev/null || kill -9 "$2"
  { wait "$2" || code=$?; } 2>/dev/null # bash would report a killed one
  if [[ "|$1|" == *"|$code|"* ]]; then return; fi
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
