# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# For check_portability.sh: the Debian system of each compiler, and the libraries of the cross compiler.

work=build/portability
ccache=1  # for make_base: systems get ccache

suite_of() { if [[ $1 == g++-14 ]]; then echo trixie; else echo bookworm; fi; }
is_here() { (. /etc/os-release && [[ ${VERSION_CODENAME-} == "$1" ]]); }

packages_of() {
  printf '%s\n' "${build_packages[@]}" "${test_packages[@]}" git
  case $1 in
    clang++-*) printf '%s\n' "clang-${1#clang++-}" "libomp-${1#clang++-}-dev" ;;
    aarch64-*) printf '%s\n' g++-aarch64-linux-gnu qemu-user debootstrap ;;
    *) echo "$1" ;;
  esac
}

# need_system COMPILER: installs it here, or makes the system that has it.
need_system() {
  local suite packages root
  suite=$(suite_of "$1")
  root=$work/$suite
  mapfile -t packages < <(packages_of "$1")
  mkdir -p "$work"
  if is_here "$suite"; then
    need_packages "${packages[@]}"
  else
    ((EUID == 0)) || die "$1 needs a Debian system of its own: run as root, for debootstrap and chroot"
    need_packages debootstrap
    if [[ ! -f $root/.made ]]; then
      rm -rf --one-file-system "$root"
      make_base "$suite"
      touch "$root/.made"
    fi
    if [[ ! -f $root/.has-$1 ]]; then
      install_in "$root" "${packages[@]}"
      touch "$root/.has-$1"
    fi
  fi
  if [[ $1 == aarch64-* ]]; then need_sysroot; fi
}

# need_sysroot: Debian's arm64 libraries and headers in $work/arm64.
need_sysroot() {
  local root=$work/arm64 downloads=$work/arm64-packages package link
  [[ ! -f $root/.made ]] || return 0
  ((EUID == 0)) || die "the libraries for aarch64 need root, for debootstrap"
  rm -rf "$root"
  need_archive_key bookworm
  unshare --mount debootstrap --download-only --arch=arm64 --variant=minbase --force-check-gpg \
    --include=libc6-dev,libstdc++-12-dev,libfmt-dev,nlohmann-json3-dev,libtomlplusplus-dev,libcli11-dev,zlib1g-dev,libssl-dev,libgtest-dev,libgmock-dev \
    bookworm "$downloads" "$(archives bookworm | awk '$2 == "bookworm" { print $1; exit }')"
  mkdir -p "$root"
  for package in "$downloads"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  # Links to /lib/... mean the sysroot's own.
  while IFS= read -r link; do ln -srfn "$root$(readlink "$link")" "$link"; done < <(find "$root" -type l -lname '/*')
  rm -rf "$downloads"
  touch "$root/.made"
}

# in_system COMPILER COMMAND...: runs it in this folder, in the compiler's system.
in_system() {
  local suite
  suite=$(suite_of "$1")
  shift
  if is_here "$suite"; then
    "$@"
    return
  fi
  # In a worktree, .git names a folder elsewhere.
  # shellcheck disable=SC2016
  FRESH_CCACHE=$PWD/$work/ccache GIT_FOLDER=$(realpath "$(git rev-parse --git-common-dir)") unshare --mount --pid --fork --kill-child bash -c '
    for folder in "$PWD" "$GIT_FOLDER"; do
      mkdir -p "$0$folder"
      mount --bind "$folder" "$0$folder"
    done
    exec scripts/check_fresh/enter.sh "$0" root "$PWD" "$@"' "$PWD/$work/$suite" "$@" </dev/null
}

# command_of COMPILER: c++ where it is this one, as in other builds, whose cached results ccache then finds.
command_of() {
  # shellcheck disable=SC2016
  in_system "$1" bash -c '
    path_of() { realpath "$(command -v "$1")"; }
    if [[ $(path_of c++) == "$(path_of "$0")" ]]; then echo c++; else echo "$0"; fi' "$1"
}
