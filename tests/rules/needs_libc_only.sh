#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A portable program needs the C library of a machine, libgcc_s, which that library needs itself, and nothing else.
#
# Usage: needs_libc_only.sh PROGRAM

set -euo pipefail
needed=$(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[[ $needed == *libc.so* ]] || { echo "$1 names no C library: what is it?" >&2; exit 1; }
others=$(grep -vE '^(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[a-z0-9-]*)\.so' <<<"$needed" || true)
[[ -z $others ]] || { echo "$1 also needs: $others" >&2; exit 1; }
