# SPDX-License-Identifier: Apache-2.0
"""Judges the files of a benchmark: check_bench.py SCHEMA JSON CSV. Reads the CSV with the csv module, computes its columns again
from the samples in the JSON with the statistics module, and validates the JSON with jsonschema. Prints the number of rows.

Exit codes: 0 all is right; 1 something is wrong; 77 all but the JSON Schema is right, for which this Python has no jsonschema."""
import csv
import json
import math
import statistics
import sys

result = json.load(open(sys.argv[2]))
rows = list(csv.DictReader(open(sys.argv[3], newline=""), strict=True))
measurements = result["measurements"]
assert len(rows) == len(measurements) > 0, (len(rows), len(measurements))
for row, measurement in zip(rows, measurements):
    samples = measurement["samples"]
    median = statistics.median(samples)
    spread = statistics.median(abs(s - median) for s in samples) / statistics.NormalDist().inv_cdf(0.75)
    expected = {"count": len(samples), "least": min(samples), "median": median, "most": max(samples),
                "mean": statistics.fmean(samples), "noise_percent": 100 * spread / median if median else 0}
    for name, value in expected.items():
        assert math.isclose(float(row[name]), value, rel_tol=2e-5, abs_tol=2e-3), (row, name, value)
    assert row["unit"] == measurement["unit"]
    assert {name: row[name] for name in measurement["key"]} == measurement["key"], row
print(f"{len(rows)} rows")
try:
    import jsonschema
except ImportError:
    print(f"{sys.executable} does not import jsonschema")
    sys.exit(77)
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
errors = list(jsonschema.Draft202012Validator(schema).iter_errors(result))
for error in errors:
    print(f"{error.json_path}: {error.message}")
sys.exit(len(errors) > 0)
