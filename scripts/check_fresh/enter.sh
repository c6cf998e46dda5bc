#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a Debian system in a folder, as a login there would. Started in new mount and process namespaces.
#
# Usage: enter.sh ROOT ACCOUNT FOLDER COMMAND...
#
# Mounts /proc, /sys, /dev/pts and /dev/shm in ROOT, then runs COMMAND there as ACCOUNT in FOLDER, with umask 077, default
# signal handling and no variable of this environment. FRESH_CCACHE names the cache of the ccache there.

set -euo pipefail
root=$1 account=$2 folder=$3
shift 3

mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev shm "$root/dev/shm"

path=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games
if [[ $account == root ]]; then path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; fi
home=$(awk -F: -v account="$account" '$1 == account { print $6 }' "$root/etc/passwd")
environment=(HOME="$home" USER="$account" LOGNAME="$account" SHELL=/bin/bash TERM="${TERM:-dumb}" LANG=C.UTF-8 PATH="$path")
if [[ -n ${FRESH_CCACHE-} ]]; then
  mkdir -p "$FRESH_CCACHE" "$root/var/cache/ccache"
  mount --bind "$FRESH_CCACHE" "$root/var/cache/ccache"
  [[ $(chroot "$root" stat -c %U /var/cache/ccache) == "$account" ]] || chroot "$root" chown -R "$account" /var/cache/ccache
  environment+=(CCACHE_DIR=/var/cache/ccache)
fi

# shellcheck disable=SC2016
exec env --default-signal -i "${environment[@]}" \
  "$(command -v chroot)" --userspec="$account" "$root" bash -c 'umask 077 && cd "$0" && exec "$@"' "$folder" "$@"
