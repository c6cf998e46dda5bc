# SPDX-License-Identifier: Apache-2.0
"""Checks a trace file: check_trace.py FILE. Checks the events against the trace event format, prints how many there are of
each category, and has Perfetto's trace processor count them, too (browser_trace_processor.py).

Exit codes: 0 valid; 1 not; 77 valid as far as this script can tell, but Perfetto's trace processor is missing."""
import gzip
import json
import sys
from collections import Counter, defaultdict

path = sys.argv[1]
with open(path, "rb") as file:
    data = file.read()
trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
problems = []
names = {}
open_slices = defaultdict(list)
flows = defaultdict(list)
slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
for event in trace["traceEvents"]:
    if event["ph"] == "M":
        names[(event["pid"], event.get("tid") if "thread" in event["name"] else None, event["name"])] = event["args"]
    elif event["ph"] == "X":
        if not (isinstance(event["ts"], float) and event["dur"] >= 0 and isinstance(event["name"], str)):
            problems.append(f"not a slice: {event}")
    elif event["ph"] in "sf":
        flows[event["id"]].append(event)
    else:
        problems.append(f"an unknown phase: {event}")
# Slices of a thread nest: a viewer draws no others.
for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
    begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
    stack = open_slices[(event["pid"], event["tid"])]
    while stack and stack[-1] <= begin:
        stack.pop()
    if stack and end > stack[-1] + 1:
        problems.append(f"ends after the slice around it: {event}")
    stack.append(end)
    if (event["pid"], event["tid"], "thread_name") not in names or (event["pid"], None, "process_name") not in names:
        problems.append(f"on a thread without a name: {event}")
for id, ends in flows.items():
    if [end["ph"] for end in ends] != ["s", "f"] or ends[0]["ts"] > ends[1]["ts"]:
        problems.append(f"flow {id} does not lead from one event to a later one")
for problem in problems[:20]:
    print(problem)
if problems:
    sys.exit(1)

counts = Counter(event["cat"] for event in slices)
print("ranks=%d flows=%d %s" % (len({event["pid"] for event in slices}), len(flows),
                                " ".join(f"{category}={count}" for category, count in sorted(counts.items()))))
try:
    from browser_trace_processor import BrowserTraceProcessor, Missing
except ImportError as error:
    print(f"{sys.executable} does not import {error.name}")
    sys.exit(77)
try:
    processor = BrowserTraceProcessor(data)
except Missing as what:
    print(f"missing: {what}")
    sys.exit(77)
with processor:
    read = {row.category: row.n for row in processor.query("select category, count(*) as n from slice group by category")}
    errors = [row.name for row in processor.query(
        "select name from stats where severity in ('error', 'data_loss') and value > 0")]
    linked = next(iter(processor.query("select count(*) as n from flow"))).n
    seconds = 1e-9 * next(iter(processor.query("select sum(dur) as ns from slice where category = 'step'"))).ns
    ranks = next(iter(processor.query("select count(distinct upid) as n from process where name like 'rank %'"))).n
steps = 1e-6 * sum(event["dur"] for event in slices if event["cat"] == "step")
if (read, errors, linked, ranks) != (dict(counts), [], len(flows), len({event["pid"] for event in slices})):
    print(f"Perfetto reads {read}, {linked} flows, {ranks} ranks, errors {errors}")
    sys.exit(1)
if abs(seconds - steps) > 1e-9 * counts["step"] + 1e-9 * steps:
    print(f"Perfetto reads steps of {seconds} s, the file has {steps} s")
    sys.exit(1)
