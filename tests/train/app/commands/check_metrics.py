# SPDX-License-Identifier: Apache-2.0
"""Validates lines of metrics.jsonl with jsonschema: check_metrics.py SCHEMA METRICS. Prints the number of each event.

Exit codes: 0 all are valid; 1 some are not; 77 this Python has no jsonschema."""
import collections
import json
import sys

try:
    import jsonschema
except ImportError:
    print(f"{sys.executable} does not import jsonschema")
    sys.exit(77)

schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
counts = collections.Counter()
bad = 0
for number, line in enumerate(open(sys.argv[2]), 1):
    event = json.loads(line)
    counts[event["event"]] += 1
    # The definition of the event itself: the error of a "oneOf" names no member.
    known = event["event"] in schema["$defs"]
    part = {"$defs": schema["$defs"], **schema["$defs"][event["event"]]} if known else schema
    for error in jsonschema.Draft202012Validator(part).iter_errors(event):
        bad += 1
        print(f"line {number}: {error.json_path}: {error.message}")
    jsonschema.validate(event, schema)
    if event["event"] == "train":
        parts = ("data_wait", "forward", "backward", "exposed_communication", "optimizer")
        if sum(event[part] for part in parts) > event["seconds"]:
            bad += 1
            print(f"line {number}: the parts of a step take longer than the step: {line}")
print(" ".join(f"{name}={count}" for name, count in sorted(counts.items())))
sys.exit(bad > 0)
