#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stand-in for compute-sanitizer --tool T --error-exitcode N COMMAND. FAULT as in program.sh.
set -euo pipefail
[[ $1 == --tool && $3 == --error-exitcode ]]
"${@:5}"
case ${FAULT-} in
  invalid_access) echo "========= ERROR SUMMARY: 1 error"; exit "$4" ;;
  unsupported_gpu) echo "========= Error: Device not supported"; exit 1 ;;
esac
if [[ $2 == memcheck ]]; then echo "========= ERROR SUMMARY: 0 errors"; else echo "========= RACECHECK SUMMARY: 0 hazards displayed"; fi
