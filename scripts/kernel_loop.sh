#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From an edit of a kernel to its counters: compiles one operation alone, for an H100, and runs `gradring bench kernels --counters`
# on a simulated one. Then prints the variants side by side, and where their source is with the counts of each line, and how long
# each step took. Needs nvcc.
#
# Usage: scripts/kernel_loop.sh OPERATION [--touch FILE] [BENCH-OPTION...]
#
#   scripts/kernel_loop.sh gemm --variant mma --dtype fp16
#   scripts/kernel_loop.sh gemm --touch kernels/ops/gemm/tiles.h    # as after an edit of this file: nothing from ccache
#
# The module is the target gradring_simulated_FOLDER, in build/release/operations/FOLDER with a link to the program. The program
# is built, too, where it is missing or older than the operation's contract (FOLDER.h).

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1--h} in -h | --help) usage; exit ;; esac
operation=$1
shift
header=$(grep -lE "^namespace (gradring::kernels::)?$operation [{]" kernels/ops/*/*.h | grep -m 1 -E '/(\w+)/\1\.h$') ||
  die "unknown operation '$operation', expected a name that gradring bench kernels --op takes"
folder=$(basename "$header" .h)
touched=()
if [[ ${1-} == --touch ]]; then
  touched=("$(from_here "${2:?--touch needs a file}")")
  shift 2
  export CCACHE_DISABLE=1
fi
TIMEFORMAT='    %1R s, %1U s of CPU'

# step NAME COMMAND...: runs it and prints its time.
step() {
  say "$1"
  time "${@:2}"
}

built=build/release
configure release -DGRADRING_CUDA=ON
targets=("gradring_simulated_$folder")
((${#touched[@]} == 0)) || touch "${touched[@]}"
[[ $built/gradring -nt $header ]] || targets+=(gradring)
step "Building ${targets[*]}" cmake --build "$built" --target "${targets[@]}"
ln -f "$built/gradring" "$built/operations/$folder/gradring" # it opens the module beside it
own=$built/operations/$folder
counted=$own/counted.json annotated=$own/annotated.txt
step "Counting $operation" "$own/gradring" bench kernels --device cuda --simulate-gpu h100 --op "$operation" --counters \
  -J "$counted" --annotate "$annotated" "$@"
say "Comparing the variants"
"$own/gradring" bench diff "$counted"
say "$annotated has the counts of every line, $counted all counters"
