#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every device source is compiled twice: by the host compiler into libgradring_kernels.a, by nvcc into libgradring_cuda.so.
# CMake can get this wrong in silence (one LANGUAGE property too many, and g++ compiles both), so the results are looked at.
#
# Usage: two_copies.sh MODULE ARCHIVE

set -euo pipefail
module=$1
archive=$2

fail() {
  echo "two_copies: $*" >&2
  exit 1
}

# The functions that the device sources define for others, as the linker sees them, without their return types; those of
# native variants are the CPU's alone.
entry_points() { nm -C --defined-only "$archive" | sed -n 's/^[0-9a-f]* T //p' | grep -F '::on_cpu::' | grep -vF '::native::' | sort -u; }
all_of_module() { nm -C --defined-only "$module" | sed 's/^[0-9a-f]* [A-Za-z] //'; }

readelf -SW "$module" | grep -F .nv_fatbin >/dev/null || fail "no device code in $module: nvcc did not compile it"
readelf -dW "$module" | grep -F NEEDED | grep -F libcuda.so && fail "$module needs the driver, which a machine without a GPU lacks"
all_of_module | grep -E 'gradring::kernels::[a-z0-9_:]*on_cpu::' && fail "$module holds the host compiler's copy of these"
nm -C "$archive" 2>/dev/null | grep -F '::on_cuda::' && fail "$archive holds nvcc's copy of these"

mapfile -t names < <(entry_points)
((${#names[@]})) || fail "no function of a device source in $archive: expected a function of each"
missing=$(comm -23 <(printf '%s\n' "${names[@]//::on_cpu::/::on_cuda::}" | sort) <(all_of_module | sort))
[[ -z $missing ]] || fail "not in $module:"$'\n'"$missing"
echo "${#names[@]} functions, each in both copies"
