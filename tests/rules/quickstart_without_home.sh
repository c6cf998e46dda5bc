#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that scripts/quickstart.sh comes as far as its build where HOME is not set, as in a service or a container.
#
# Usage: quickstart_without_home.sh REPOSITORY
set -euo pipefail

stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT
printf '#!/bin/sh\necho "install ok installed"\n' >"$stubs/dpkg-query"
printf '#!/bin/sh\nexit 77\n' >"$stubs/cmake"
chmod +x "$stubs"/*

code=0
env -u HOME -u XDG_CACHE_HOME PATH="$stubs:$PATH" "$1/scripts/quickstart.sh" || code=$?
[[ $code == 77 ]] || { echo "quickstart.sh ended with $code before it called cmake" >&2; exit 1; }
