# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For check_fresh.sh, check_portability.sh and package/try.sh: makes fresh Debian systems in folders of $work.

# archives SUITE: "URI SUITE COMPONENT" for every Debian repository that apt uses here, with this machine's release replaced
# by SUITE: bookworm-security becomes trixie-security. Empty where this is no Debian.
archives() {
  local here
  here=$(. /etc/os-release && [[ $ID == debian ]] && echo "${VERSION_CODENAME-}") || return 0
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
    awk -v here="$here" -v suite="$1" '
      $2 == here || index($2, here "-") == 1 { print $1, suite substr($2, length(here) + 1), $3 }' | sort -u
}

# need_archive_key SUITE: debootstrap and apt check signatures with Debian's keyring, which must be new enough for SUITE.
need_archive_key() {
  has_key() { compgen -G "/usr/share/keyrings/debian-archive-$1-stable.[gp]*" >/dev/null; }
  need_packages debian-archive-keyring
  has_key "$1" && return
  say "Upgrading debian-archive-keyring, which has no key of $1"
  apt-get update -qq
  apt-get install -y -qq debian-archive-keyring
  has_key "$1" || die "debian-archive-keyring $(dpkg-query -W -f '${Version}' debian-archive-keyring) has no key of $1:" \
    "install a newer one"
}

# make_base SUITE: the minimal system $work/SUITE, which takes its packages from where this machine takes its own.
make_base() {
  local suite=$1 root=$work/$1 mirror options=()
  need_archive_key "$suite"
  [[ -n $(archives "$suite") ]] || apt-get update -qq
  mirror=$(archives "$suite" | awk -v suite="$suite" '$2 == suite { print $1; exit }')
  # A debootstrap older than the suite has no script for it, but one for sid, which all later suites share.
  [[ -e /usr/share/debootstrap/scripts/$suite ]] || options=(sid)
  # In a mount namespace, so that an interrupt leaves nothing mounted.
  unshare --mount debootstrap --variant=minbase --force-check-gpg "$suite" "$root" "$mirror" "${options[@]}"
  if [[ -n $mirror ]]; then
    archives "$suite" |
      sed -E 's|([^ ]*)|deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \1|' >"$root/etc/apt/sources.list"
  fi
  take_network "$root"
  if [[ -n $ccache ]]; then install_in "$root" ccache; fi
}

# take_network ROOT: this machine's way to the archive and its name resolution.
take_network() {
  local root=$1
  {
    apt-config dump | grep -E '^Acquire::(https?|ftp|Retries|Check)' || true
    if [[ -n ${http_proxy-} ]]; then echo "Acquire::http::Proxy \"$http_proxy\";"; fi
    if [[ -n ${https_proxy-} ]]; then echo "Acquire::https::Proxy \"$https_proxy\";"; fi
  } >"$root/etc/apt/apt.conf.d/99host"
  if grep -q '^deb .*https:' "$root/etc/apt/sources.list" && [[ -f /etc/ssl/certs/ca-certificates.crt ]]; then
    mkdir -p "$root/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  fi
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %s\n' "$(uname -n)" >"$root/etc/hosts"
}

# install_in ROOT PACKAGE...
install_in() {
  local root=$1
  shift
  unshare --mount --pid --fork --kill-child scripts/check_fresh/enter.sh "$root" root / bash -c \
    'umask 022; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"' - "$@"
}

# copy_base SUITE USER: $work/SUITE-USER, a copy of the base with the checkout. For USER sudo with what a common installation
# has in addition: sudo, git, certificates, and the account `user`, which needs no password for sudo.
copy_base() {
  local suite=$1 root=$work/$1-$2
  cp -a --reflink=auto "$work/$suite" "$root"
  if [[ $2 == sudo ]]; then
    install_in "$root" sudo git ca-certificates
    chroot "$root" /usr/sbin/useradd --create-home --shell /bin/bash --groups sudo user
    echo '%sudo ALL=(ALL:ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/nopasswd"
    chmod 440 "$root/etc/sudoers.d/nopasswd"
  fi
  (
    umask 077
    mkdir -p "$root$checkout"
    git clone --quiet --no-local --depth 1 . "$root$checkout"
  )
  if [[ $2 == sudo ]]; then chroot "$root" chown -R user:user "${checkout%/*}"; fi
}

# title_of SYSTEM: "Debian 12.11"
title_of() { echo "Debian $(cat "$work/$1/etc/debian_version")"; }
