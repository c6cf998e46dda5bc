#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/nodes_check.sh, where it may not make namespaces, says why and exits with 77, which ctest takes as skipped.
#
# Usage: nodes_check_refused.sh SCRIPT PROGRAM
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
printf '#!/bin/sh\necho "mount failed: Operation not permitted" >&2\nexit 1\n' >"$place/ip"
chmod +x "$place/ip"
code=0
said=$(PATH=$place:$PATH "$1" "$2") || code=$?
echo "exit code $code: $said"
((code == 77)) && [[ $said == 'skipped: needs '*': mount failed: Operation not permitted' ]]
