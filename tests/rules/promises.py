#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""promises.py FILE REPOSITORY: each promise that FILE quotes still stands in the document that its heading names.

FILE has headings `## docs/NAME.md`, each with a table whose first column quotes that document.
"""
import pathlib
import re
import sys

promises, repository = map(pathlib.Path, sys.argv[1:3])
document, text, count, missing = "", "", 0, 0
for line in promises.read_text().splitlines():
    if heading := re.match(r"## (\S+\.md)$", line):
        document = heading[1]
        text = " ".join((repository / document).read_text().split())
    elif document and (row := re.match(r"\| (?!promise \|)([^|-].*?) \| (.+) \|$", line)):
        count += 1
        if row[1] not in text:
            print(f"{document} no longer says: {row[1]}", file=sys.stderr)
            missing += 1
        if "`" not in row[2] and not row[2].startswith("limit: "):
            print(f"{document}: no test and no limit: {row[1]}", file=sys.stderr)
            missing += 1
print(f"{count} promises")
sys.exit(1 if missing or not count else 0)
