# SPDX-License-Identifier: Apache-2.0
"""Validates a report of gradring cuda run with jsonschema: check_report.py SCHEMA REPORT. Prints each finding.

Exit codes: 0 it is valid; 1 it is not; 77 this Python has no jsonschema."""
import json
import sys

try:
    import jsonschema
except ImportError:
    print(f"{sys.executable} does not import jsonschema")
    sys.exit(77)

schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
report = json.load(open(sys.argv[2]))
errors = list(jsonschema.Draft202012Validator(schema).iter_errors(report))
for error in errors:
    print(f"{error.json_path}: {error.message}")
counts = {"error": 0, "warning": 0, "formal": 0}
for finding in report["findings"]:
    print(f"{finding['kind']} {finding['kernel']} {finding['file']}:{finding['line']}")
    if not finding["suppressed"]:
        counts[finding["severity"]] += 1
print(f"{len(report.get('launches', []))} launches")
expected = {"error": report["errors"], "warning": report["warnings"], "formal": report["formal"]}
if counts != expected:
    print(f"the findings are {counts}, and the report counts {expected}")
sys.exit(bool(errors) or counts != expected)
