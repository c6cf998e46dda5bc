#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything in build/release and runs every test.
#
# Usage: scripts/test.sh [FILTER]
#
# FILTER is a regular expression on the tests' names (ctest -R). Tests on real data run where GRADRING_DATA_DIR names a
# folder with mnist/ and fashion-mnist/ in it, and are skipped elsewhere.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1-} in -h | --help) usage; exit ;; esac
if [[ -z ${GRADRING_DATA_DIR-} && -d ../shared/data ]]; then
  GRADRING_DATA_DIR=$(realpath ../shared/data)
fi
[[ -z ${GRADRING_DATA_DIR-} ]] || { export GRADRING_DATA_DIR; say "Data: $GRADRING_DATA_DIR"; }

need_packages "${build_packages[@]}" "${test_packages[@]}"
configure release -DGRADRING_TESTS=ON -DGRADRING_CPU_LEVELS=all "-DGRADRING_CUDA=$(cuda_choice)"
say "Building build/release"
cmake --build --preset release
say "Testing"
run_tests release ${1:+-R "$1"}
