#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test program with the code of a level below the processor's highest; exits with 77 (skipped) where that is not lower.
#
# Usage: at_lower_level.sh LEVEL PRINT_CPU_LEVEL TEST [ARGUMENT...]
set -euo pipefail

level=$1
highest=$("$2")
shift 2
if [[ ! $level < $highest ]]; then
  echo "this processor's highest level is $highest: nothing to run at $level"
  exit 77
fi
export GRADRING_CPU_LEVEL=$level
exec "$@"
