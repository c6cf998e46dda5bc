# SPDX-License-Identifier: Apache-2.0
"""Compares CSV of `gradring runs export` with the JSON lines that it was made from.

check_csv.py METRICS CSV EVENT    prints the number of rows; fails at the first difference
"""
import csv
import json
import math
import sys


def same(text, value):
    if value is None:
        return math.isnan(float(text))
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, (int, float)):
        return float(text) == value
    return text == value if isinstance(value, str) else json.loads(text) == value


def flat(prefix, value):
    if not isinstance(value, dict):
        return {prefix: value}
    members = {}
    for name, each in value.items():
        members.update(flat(f"{prefix}.{name}", each))
    return members


def expected_rows(event):
    del event["event"]
    members = {}
    for name, value in event.items():
        members.update(flat(name, value))
    return [members]


def rows_of_ranks(event):
    del event["event"]
    return [
        {"rank": rank} | {name: value[rank] if isinstance(value, list) else value for name, value in event.items()}
        for rank in range(len(event["seconds"]))
    ]


def main(metrics, table, kind):
    with open(metrics, encoding="utf-8") as file:
        events = [event for event in map(json.loads, file) if event["event"] == kind]
    expected = [row for event in events for row in (rows_of_ranks if kind == "ranks" else expected_rows)(event)]
    with open(table, encoding="utf-8", newline="") as file:
        text = file.read()
    assert "\n" not in text.replace("\r\n", ""), "a line ends without CR LF"
    rows = list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    assert len(rows) == len(expected), f"{len(rows)} rows, expected {len(expected)}"
    for row, members in zip(rows, expected):
        assert None not in row and None not in row.values(), f"a row has not as many fields as the head: {row}"
        assert set(members) <= set(row), f"missing: {set(members) - set(row)}"
        for name, text in row.items():
            assert same(text, members[name]) if name in members else text == "", f"{name}: {text}"
    print(len(rows))


main(*sys.argv[1:])
