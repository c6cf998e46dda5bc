#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the packages: a .tar.gz and a Python wheel, which need no library but glibc and libgcc_s, and .deb files for this Debian;
# and gradring-cuda-run, the command `gradring cuda` and its library alone, as a .tar.gz and a .deb for any Debian.
#
# Usage: scripts/package.sh [OPTION...] [PACKAGE...]
#
#   PACKAGE                tar, wheel, deb (default all three), cuda; tar, wheel and cuda hold one build. cuda needs nvcc.
#   --output DIR           folder of the packages (default dist)
#   --check-reproducible   builds the packages a second time, from a clone in another folder with another umask and time
#                          zone and an empty compiler cache, and compares their bytes
#   --try                  installs each package in a fresh Debian, and trains there on two ranks or finds a race (root;
#                          package/try.sh, package/try_cuda.sh)
#
# The packages hold the commit that is checked out. One commit gives the same bytes on one Debian, except for the CUDA module,
# whose names contain a hash of the folder (docs/building.md). Dates come from SOURCE_DATE_EPOCH (default: the commit's). The
# CUDA module is built where nvcc is found, for the architectures in CUDAARCHS; GRADRING_CUDA=OFF leaves it out.
# GRADRING_MAINTAINER is the maintainer of the .deb packages, "NAME <ADDRESS>".

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
umask 022
export LC_ALL=C.UTF-8

output=$PWD/dist
wanted=()
check=0
try=0
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --output) output=$(from_here "${2:?"--output needs a folder"}"); shift 2 ;;
    --check-reproducible) check=1; shift ;;
    --try) try=1; shift ;;
    tar | wheel | deb | cuda) wanted+=("$1"); shift ;;
    *) die "unknown argument '$1'; --help lists the options" ;;
  esac
done
((${#wanted[@]})) || wanted=(tar wheel deb)
is_wanted() { [[ " ${wanted[*]} " == *" $1 "* ]]; }

need_packages "${build_packages[@]}" binutils dpkg-dev file git gzip python3
commit=$(git describe --always --abbrev=8 --exclude='*') || die "no git checkout here, whose commit a package names"
[[ -z $(git status --porcelain) ]] || commit+=-dirty
((!check)) || [[ $commit != *-dirty ]] || die "uncommitted changes: --check-reproducible compares two builds of a commit"
[[ $commit != *-dirty ]] || say "Uncommitted changes go into the packages"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^project(gradring VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
stage=build/package/gradring-$version-linux-$(uname -m)

# build PRESET [OPTION...], of $targets: configured anew, since dates come from the environment; tests that were configured before stay.
build() {
  local preset=$1
  shift
  cmake --preset "$preset" "-DGRADRING_TESTS=$(cached "$preset" GRADRING_TESTS | grep . || echo OFF)" \
    "-DGRADRING_CUDA=${GRADRING_CUDA-AUTO}" -DGRADRING_ARCH=portable "$@"
  say "Building build/$preset"
  cmake --build "build/$preset" --target "${targets[@]}"
  [[ ${targets[0]} != gradring || -f build/$preset/libgradring_cuda.so ]] || say "Without the CUDA module: no nvcc, or GRADRING_CUDA=OFF"
}

# The licenses of gradring and of the libraries that a portable program contains.
copy_licenses() {
  local name
  mkdir -p "$1"
  cp LICENSE "$1/gradring"
  for name in libcli11-dev libfmt-dev libjpeg62-turbo-dev libpng-dev libssl-dev libtomlplusplus-dev libzstd-dev \
      nlohmann-json3-dev zlib1g-dev; do
    cp "/usr/share/doc/$name/copyright" "$1/${name%-dev}" || die "no license of $name, which goes into the program"
  done
}

# The newest version of glibc's symbols that the staged files use: 2.34.
needed_glibc() {
  find "$stage" -type f \( -path '*/bin/*' -o -name '*.so' -o -name '*.so.*' \) -exec readelf --version-info --wide {} + |
    grep -oE 'Name: GLIBC_[0-9.]+' | sed 's/.*_//' | sort -uV | tail -n 1
}

write_readme() {
  local processor='' cuda='The CUDA module is not included: this package trains on CPUs.'
  if [[ -f $stage/lib/gradring/libgradring_cuda.so ]]; then
    cuda='GPUs need the NVIDIA driver; cuDNN, cuBLASLt and NCCL are loaded from the system or from pip'\''s wheels.'
  fi
  if [[ $(uname -m) == x86_64 ]]; then processor=' with SSE4.2 (x86-64-v2)'; fi
  sed -e "s/@version@/$version/; s/@machine@/$(uname -m)/; s/@processor@/$processor/; s/@glibc@/$(needed_glibc)/" \
    -e "s|@cuda@|$cuda|" scripts/package/README.in.md >"$stage/README.md"
}

# What the .tar.gz and the wheel hold, in $stage.
stage_portable() {
  local targets=(gradring)
  build portable
  rm -rf build/package
  cmake --install build/portable --prefix "$stage" --strip >/dev/null
  find "$stage" -type f \( -name gradring -o -name '*.so' \) -print0 | xargs -0 -n 1 tests/rules/needs_libc_only.sh
  copy_licenses "$stage/share/doc/gradring/licenses"
  write_readme
}

# make_tar_of PARENT FOLDER
make_tar_of() {
  tar --create --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u+rw,go=rX --directory="$1" "$2" | gzip -9 --no-name >"$output/$2.tar.gz"
}

make_tar() { make_tar_of build/package "${stage##*/}"; }

make_wheel() {
  python3 scripts/package/wheel.py --version "$version" --readme "$stage/README.md" --output "$output" "$stage" >/dev/null
}

# The .tar.gz and the .deb of gradring-cuda-run. dpkg-deb makes the latter: it depends on nothing of this Debian.
make_cuda() {
  local targets=(gradring_cuda_program gradring_cudart gradring_libcuda) name=gradring-cuda-run root=build/package-cuda folder architecture
  build portable -DGRADRING_CUDA=ON
  folder=$name-$version-linux-$(uname -m)
  rm -rf "$root"
  stage=$root/tar/$folder
  cmake --install build/portable --component cuda_run --prefix "$stage" --strip >/dev/null
  find "$stage" -type f \( -name gradring -o -name 'libcudart.so.*' \) -print0 | xargs -0 -n 1 tests/rules/needs_libc_only.sh
  copy_licenses "$stage/share/doc/$name/licenses"
  make_tar_of "$root/tar" "$folder"

  architecture=$(dpkg --print-architecture)
  mkdir -p "$root/deb/DEBIAN" "$root/deb/usr"
  cp -a "$stage/." "$root/deb/usr/"
  cp scripts/package/debian/copyright "$root/deb/usr/share/doc/$name/"
  sed -e "s/@version@/$version-1/; s/@architecture@/$architecture/; s/@glibc@/$(needed_glibc)/" \
    -e "s/@maintainer@/${GRADRING_MAINTAINER:-gradring maintainers <maintainers@gradring.example>}/" \
    scripts/package/debian/cuda_run.control >"$root/deb/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$root/deb" "$output/${name}_$version-1_$architecture.deb" >/dev/null
}

make_deb() {
  local targets=(gradring gradring_dev)
  build debian ${GRADRING_MAINTAINER:+"-DGRADRING_MAINTAINER=$GRADRING_MAINTAINER"}
  rm -rf build/debian/packages
  cpack --config build/debian/CPackConfig.cmake -B build/debian/packages
  cp build/debian/packages/*.deb "$output/"
}

# Builds the packages once more in a clone elsewhere, and compares.
check_reproducible() {
  local elsewhere file differences=0
  elsewhere=$(mktemp -d "${TMPDIR:-/var/tmp}/gradring-package.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$elsewhere'" EXIT
  say "Building a second time in $elsewhere"
  (
    umask 077
    git clone --quiet --no-local . "$elsewhere/a second/checkout"
    cd /
    TZ=UTC-13 CCACHE_DIR=$elsewhere/ccache "$elsewhere/a second/checkout/scripts/package.sh" --output "$elsewhere/packages" "${wanted[@]}"
  )
  for file in "${made[@]}"; do
    if cmp "$output/$file" "$elsewhere/packages/$file"; then
      echo "same bytes       $file"
    else
      echo "DIFFERENT BYTES  $file"
      differences=1
      ! command -v diffoscope >/dev/null || diffoscope "$output/$file" "$elsewhere/packages/$file" | head -n 200 || true
    fi
  done
  ((!differences)) || die "two builds of $commit differ"
}

mkdir -p "$output"
new=$(mktemp -d "$output/.new.XXXXXX")
final=$output output=$new
trap 'rm -rf "$new"' EXIT
if is_wanted tar || is_wanted wheel; then stage_portable; fi
for package in "${wanted[@]}"; do "make_$package"; done
mapfile -t made < <(find "$new" -type f -printf '%f\n' | LC_ALL=C sort)
output=$final
(cd "$new" && mv -f -- "${made[@]}" "$output/")
rm -rf "$new"
trap - EXIT

if ((check)); then check_reproducible; fi
if ((try)); then
  others=()
  for file in "${made[@]}"; do
    if [[ $file == gradring-cuda-run* ]]; then scripts/package/try_cuda.sh "$output/$file"; else others+=("$output/$file"); fi
  done
  ((!${#others[@]})) || scripts/package/try.sh "${others[@]}"
fi
say "Packages of $commit in $output"
(cd "$output" && sha256sum -- "${made[@]}")
