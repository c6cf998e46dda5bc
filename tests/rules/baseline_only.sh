#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails if a program has instructions above x86-64-v2 outside the sections of higher levels, or no such section.
#
# Usage: baseline_only.sh PROGRAM [SECTION]
#
# Disassembles every section of code but .x86_64_v3 and .x86_64_v4 (scripts/cmake/GradringLevels.cmake). With SECTION, that one
# alone, and fails if it has no such instruction: the check finds them where they are.
# tzcnt is allowed: older processors run its encoding as bsf, and compilers emit it for both.
set -euo pipefail

program=$1
mapfile -t code < <(readelf -SW "$program" | sed -n 's/^ *\[ *[0-9]*\] \(\.[^ ]*\) .* AX .*/\1/p')
mapfile -t levels < <(printf '%s\n' "${code[@]}" | grep '^\.x86_64_v')
((${#levels[@]})) || { echo "$program has no section .x86_64_v*: no copies of hot code"; exit 1; }

sections=()
for section in "${code[@]}"; do
  if [[ $section == "${2-$section}" && ($# -gt 1 || $section != .x86_64_v*) ]]; then sections+=(-j "$section"); fi
done
((${#sections[@]})) || { echo "$program has no section ${2-with code}"; exit 1; }

objdump -d --no-show-raw-insn "${sections[@]}" "$program" | awk -v expected="$(($# > 1))" '
  /^[0-9a-f]+ <.*>:$/ { name = $2; next }
  !/^ +[0-9a-f]+:/ { next }
  { count++; instruction = $2 ~ /^{/ ? $3 : $2 }  # behind {vex} or {evex}
  instruction ~ /^[kv][a-z]/ || instruction ~ /^(aes|gf2p8|pclmul|rd(rand|seed)|sha(1|256)|tdp|tile|xsave|xrstor)/ ||
  instruction ~ /^(adcx|adox|andn|bextr|blsi|blsmsk|blsr|bzhi|lzcnt|movbe|mulx|pdep|pext|rorx|sarx|shlx|shrx)[lqw]?$/ {
    if (found++ < 10 && !expected) print "above x86-64-v2: " $0 " in " name
  }
  END {
    printf "%d instructions, %d above x86-64-v2\n", count, found
    exit count == 0 || (found > 0) != expected
  }'
