#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints which of cuDNN's engines the CUDA backend chooses for every convolution of every model on an H100 and an A100, and
# their workspaces. Needs nvcc and cuDNN 9.8 or later, and no GPU.
#
# Usage: scripts/cudnn_plans.sh [--write]
#
# --write puts the table into docs/results/cudnn.md, and what this version of cuDNN offers into
# tests/nn/backend/cuda/cudnn_record.txt, which the tests compare with the library that they find.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1-} in
  -h | --help) usage; exit ;;
  '' | --write) ;;
  *) die "unknown option '$1', expected --write" ;;
esac
need_packages "${build_packages[@]}" "${test_packages[@]}"
need_cudnn || die "no cuDNN: install libcudnn9, or allow pip to install NVIDIA's wheel"
configure release -DGRADRING_TESTS=ON -DGRADRING_CUDA=ON
cmake --build --preset release --target print_cudnn_plans
program=build/release/tests/nn/backend/cuda/print_cudnn_plans
if [[ ${1-} != --write ]]; then exec $program table; fi
table=$($program table)
record=$($program record)
printf '%s\n' "$table" >docs/results/cudnn.md
printf '%s\n' "$record" >tests/nn/backend/cuda/cudnn_record.txt
