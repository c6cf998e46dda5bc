#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lists every message that the tests provoke, so that a person can review them.
#
# Usage: scripts/list_messages.sh [CTEST-OPTION...]
#
# Runs the tests of build/release (default: all; "-L launch" for one suite) and records the exceptions that are thrown and what
# is written to stderr. Writes build/messages.txt: one message a line, sorted, each once, with its type or "stderr" before it.
# N stands for a number, PATH for an absolute path, HASH for a checksum. Programs that a test starts with another LD_PRELOAD are missing.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ ${1-} == -h || ${1-} == --help ]]; then usage; exit; fi
folder=$(mktemp -d /tmp/gradring-messages-XXXXXX) # short: LD_PRELOAD takes no path with a space
trap 'rm -rf "$folder"' EXIT
"${CXX:-g++}" -std=c++20 -O1 -shared -fPIC tests/support/record_messages.cpp -o "$folder/record.so"
mkfifo "$folder/fifo"

normalize() {
  sed -E -e 's/\\n$//' -e "s#$PWD/##g" -e 's#(^|[^[:alnum:]_.-])/(tmp|proc|dev|home|root|usr|lib|var|etc)\b(/[[:alnum:]_.+%@-]+)?#\1PATH#g' \
    -e 's/\b[0-9]+\b/N/g' -e 's/\b[0-9a-f]{12,}\b/HASH/g' -e 's/\b[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?/N/g'
}

# shellcheck disable=SC2016  # $0 is awk's
awk '!seen[$0]++' <"$folder/fifo" >"$folder/raw" &
reader=$!
exec {fifo}>"$folder/fifo"
status=0
RECORDED_MESSAGES=$folder/fifo LD_PRELOAD=$folder/record.so run_tests release "$@" || status=$?
exec {fifo}>&-
wait "$reader"
normalize <"$folder/raw" | LC_ALL=C sort -u >build/messages.txt
say "build/messages.txt: $(wc -l <build/messages.txt) messages"
exit "$status"
