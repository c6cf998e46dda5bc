#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks with what scripts/quickstart.sh calls cmake, and then the program. Both are stand-ins.
#
# Usage: quickstart.sh REPOSITORY CASE
#
#   without_home   HOME is not set, as in a service or a container
#   keeps_cuda     a build with the CUDA side stays one, where the environment does not ask for it
#   fetched_data   `gradring data fetch mnist` has downloaded MNIST
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp -r "$1/scripts" "$place"
mkdir -p "$place/bin" "$place/build/release"
printf '#!/bin/sh\necho "install ok installed"\n' >"$place/bin/dpkg-query"
printf '#!/bin/sh\necho "cmake $*"\n' >"$place/bin/cmake"
printf '#!/bin/sh\necho "gradring $*"\nexit 77\n' >"$place/build/release/gradring"
chmod +x "$place/bin"/* "$place/build/release/gradring"

unset GRADRING_CUDA GRADRING_DATA_DIR
case $2 in
  without_home) expected='--dataset digits' ;;
  keeps_cuda)
    expected=-DGRADRING_CUDA=ON
    echo GRADRING_CUDA:STRING=ON >"$place/build/release/CMakeCache.txt"
    ;;
  fetched_data)
    expected="--dataset mnist --data-dir $place/datasets/mnist"
    mkdir -p "$place/datasets/mnist"
    touch "$place/datasets/mnist/train-images-idx3-ubyte.gz"
    ;;
esac
code=0
output=$(env -u HOME -u XDG_CACHE_HOME PATH="$place/bin:$PATH" "$place/scripts/quickstart.sh") || code=$?
[[ $code == 77 && $output == *"$expected"* ]] ||
  { echo "quickstart.sh ended with $code, expected 77 and '$expected': $output" >&2; exit 1; }
