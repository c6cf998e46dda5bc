# SPDX-License-Identifier: Apache-2.0
"""scripts/run_events.py follows a run over its restarts: check_follow.py SCRIPTS FOLDER.

A rank that outlives another one writes "end: failed"; the launcher restarts the run, and more events come."""
import fcntl
import json
import os
import pathlib
import sys
import threading

sys.path.insert(0, sys.argv[1])
from run_events import read_events  # noqa: E402

run, launcher = pathlib.Path(sys.argv[2], "run"), pathlib.Path(sys.argv[2], "launcher")
run.mkdir(parents=True)
launcher.mkdir()
held = os.open(launcher, os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
(run / ".lock").write_text(json.dumps({"launch_folder": str(launcher)}))
metrics = run / "metrics.jsonl"


def append(*events):
    with open(metrics, "a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


append({"event": "header", "schema": 1}, {"event": "train", "step": 1}, {"event": "end", "outcome": "failed"})
steps, restarted = [], threading.Event()


def follow():
    for event in read_events(metrics, follow=True):
        steps.append(event.get("step"))
        if event["event"] == "end":
            restarted.set()


follower = threading.Thread(target=follow, daemon=True)
follower.start()
assert restarted.wait(60)
follower.join(1)  # two polls: it would have ended by now
assert follower.is_alive(), "it took the end of an attempt for the end of the run"
append({"event": "header", "schema": 1}, {"event": "train", "step": 2}, {"event": "end", "outcome": "finished"})
os.close(held)
(run / ".lock").unlink()
follower.join(60)
assert not follower.is_alive() and [it for it in steps if it] == [1, 2], steps
