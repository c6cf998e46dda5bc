#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks scripts/count_lessons.py: a table that it has filled passes its --check, and one with another number does not.
#
# Usage: counted_lessons.sh REPOSITORY PROGRAM
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
lesson=$folder/README.md
count() { "$1/scripts/count_lessons.py" --program "$2" "${@:3}" "$lesson"; }

cat >"$lesson" <<'END'
## Counted

```
gradring bench kernels --device cuda --simulate-gpu h100 --op step_state --dtype fp32 --counters
```

| case | kernel | lanes |
|---|---|---|
END
count "$@"
# shellcheck disable=SC2016  # backquotes of Markdown
grep -qxF '| step_state advance | `step_state_advance_kernel` | 1.0 |' "$lesson"
count "$@" --check
sed -i 's/| 1\.0 |$/| 2.0 |/' "$lesson"
if count "$@" --check; then
  echo "a wrong number was not found" >&2
  exit 1
fi
