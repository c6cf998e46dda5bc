#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails if a portable program or its CUDA module needs a shared library other than glibc's and libgcc_s.
#
# Usage: needs_libc_only.sh PROGRAM

set -euo pipefail
needed=$(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[[ $needed == *libc.so* ]] || { echo "$1 needs no C library: expected a dynamically linked program" >&2; exit 1; }
others=$(grep -vE '^(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[a-z0-9-]*)\.so' <<<"$needed" || true)
[[ -z $others ]] || { echo "$1 also needs: $others" >&2; exit 1; }
