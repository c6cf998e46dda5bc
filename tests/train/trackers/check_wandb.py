# SPDX-License-Identifier: Apache-2.0
"""Logs a run by scripts/to_wandb.py offline, and compares what wandb wrote with metrics.jsonl: check_wandb.py SCRIPT RUN FOLDER.

Exit codes: 0; 1 a difference; 77 this Python has no wandb."""
import json
import os
import pathlib
import struct
import subprocess
import sys

try:
    from wandb.proto import wandb_internal_pb2
except ImportError:
    print(f"{sys.executable} does not import wandb")
    sys.exit(77)

HEADER, BLOCK = 7, 1 << 15  # bytes of the file's own header, and of a block of LevelDB's log format


def records_of(path):
    """The records of a .wandb file, which is a LevelDB log of protobuf messages."""
    data, at, parts = path.read_bytes(), HEADER, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # no record begins in the last bytes of a block
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack("<IHB", data[at:at + 7])
        parts += data[at + 7:at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(parts)
            parts = b""


def main():
    script, run, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir()
    variables = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONFIG_DIR": str(folder),
                 "WANDB_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, script, str(run), "--dir", str(folder)], env=variables, check=True)
    history, found = {}, {}
    for record in records_of(next(folder.glob("wandb/offline-run-*/*.wandb"))):
        kind = record.WhichOneof("record_type")
        if kind == "history":
            items = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            history.setdefault(items["step"], {}).update(items)
        elif kind == "run" and "name" not in found:
            found = {"name": record.run.display_name, "tags": list(record.run.tags),
                     "config": {item.key: json.loads(item.value_json) for item in record.run.config.update}}
        elif kind == "exit":
            found["exit"] = record.exit.exit_code
    events = [json.loads(line) for line in open(run / "metrics.jsonl")]
    header = events[0]
    assert found["name"] == header["name"] and found["tags"] == header["tags"] and found["exit"] == 0, found
    assert found["config"]["lr"] == header["config"]["lr"] and found["config"]["ranks"] == header["ranks"], found
    for event in events:
        at = history.get(event.get("step"))
        if event["event"] == "train":
            assert at["train/loss"] == event["loss"] and at["train/gradient_norm"] == event["gradient_norm"], (event, at)
        if event["event"] == "eval":
            assert at["test/accuracy"] == event["accuracy"], (event, at)
        if event["event"] == "ranks":
            assert [at["ranks/seconds/0"], at["ranks/seconds/1"]] == event["seconds"], (event, at)


main()
