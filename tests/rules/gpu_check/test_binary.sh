#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stand-in for a GoogleTest binary. FAULT as in program.sh.
set -euo pipefail

# skip NAME REASON
skip() { printf '[ RUN      ] %s\nfile.cpp:3: Skipped\n%s\n[  SKIPPED ] %s (0 ms)\n' "$1" "$2" "$1"; }

skip HostWork.Drops 'only without a GPU, which takes it'
case ${FAULT-} in
  skipped_test) skip OnGpu.Runs 'no CUDA device: the driver does not start' ;;
  other_cudnn) skip Engine.IsRecorded 'libcudnn is 9.20.0, cudnn_record.txt is of another version: write it anew' ;;
  no_libraries)
    skip Engine.IsThere 'libcudnn.so.9: cannot open shared object file'
    skip Product.IsThere 'libcublasLt.so.13: cannot open shared object file'
    ;;
  failed_test) printf '[  FAILED  ] OnGpu.Runs (0 ms)\n'; exit 1 ;;
  other_system) echo "test: error while loading shared libraries: libfmt.so.9" >&2; exit 127 ;;
  no_test) exit 0 ;;
esac
echo '[  PASSED  ] 17 tests.'
