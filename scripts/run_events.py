# SPDX-License-Identifier: Apache-2.0
"""What to_wandb.py and to_mlflow.py share: arguments, and a reader of metrics.jsonl (docs/metrics.md, schema 1)."""
import argparse
import fcntl
import importlib
import json
import math
import os
import pathlib
import sys
import time

SCHEMA = 1
POLL_SECONDS = 0.5


def parser_of(description):
    """A parser with the arguments of both scripts."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run directory of `gradring train`, or its metrics.jsonl")
    parser.add_argument("--name", help="name of the run (default: that of --name, else of the run directory)")
    parser.add_argument("--follow", action="store_true", help="logging of a running run, until it ends")
    return parser


def imported(module, package):
    """The module. Exits with a message if it is not installed; pip installs it from `package`."""
    try:
        return importlib.import_module(module)
    except ImportError:
        sys.exit(f"{sys.argv[0]}: {sys.executable} does not import {module}: install it with `pip install {package}`")


def metrics_file(run):
    """The metrics.jsonl of a run directory, or the file itself. Exits with a message if there is none."""
    path = pathlib.Path(run)
    path = path / "metrics.jsonl" if path.is_dir() else path
    if not path.is_file():
        sys.exit(f"{sys.argv[0]}: {path} is not there: name the run directory of `gradring train`, or its metrics.jsonl")
    return path


def lines(path, follows):
    """The complete lines of a file, also those that are appended, for as long as `follows()` holds at its end."""
    with open(path, encoding="utf-8") as file:
        part = ""
        while True:
            part += file.readline()
            if part.endswith("\n"):
                yield part
                part = ""
            elif not follows():
                if part:
                    print(f"{path}: ignored the incomplete last line", file=sys.stderr)
                return
            else:
                time.sleep(POLL_SECONDS)
                if file.tell() > path.stat().st_size:  # a rollback or a resume has truncated it
                    file.seek(0, 2)
                    part = ""


def may_be_restarted(path):
    """Whether a launcher that lives on this host may start the ranks of the run again: its lock file names the folder that
    the launcher holds (train/core/setup/run_lock.h)."""
    try:
        folder = os.open(json.loads((path.parent / ".lock").read_text())["launch_folder"], os.O_RDONLY | os.O_DIRECTORY)
    except (OSError, ValueError, TypeError, KeyError):
        return False
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(folder)


def read_events(path, follow=False):
    """The events, each a dict. With `follow` until the run has ended and no launcher may restart it. Exits with a message
    if the file is of another kind."""
    ended = False  # by the last event: a run that was resumed has earlier ends
    for number, line in enumerate(lines(path, lambda: follow and (not ended or may_be_restarted(path))), 1):
        try:
            event = json.loads(line)
            kind = event["event"]
        except (ValueError, TypeError, KeyError):
            print(f"{path}: ignored line {number}, which is not an event", file=sys.stderr)
            continue
        if number == 1 and (kind != "header" or event.get("schema") != SCHEMA):
            sys.exit(f"{sys.argv[0]}: {path} begins with {kind} of schema {event.get('schema')}, expected a header of "
                     f"schema {SCHEMA}: use the version of gradring that wrote it")
        ended = kind == "end"
        yield event


def numbers_of(event):
    """The metrics of an event by name, train/loss or ranks/seconds/0; empty for events that are no metrics."""
    kind = event["event"]
    if kind not in ("train", "eval", "ranks"):
        return {}
    group = event.get("split", "test") if kind == "eval" else kind
    numbers = {}
    for name, value in event.items():
        if name in ("event", "time", "step"):
            continue
        for suffix, each in [("", value)] if not isinstance(value, list) else [(f"/{i}", v) for i, v in enumerate(value)]:
            if isinstance(each, (bool, int, float)) and math.isfinite(each):
                numbers[f"{group}/{name}{suffix}"] = float(each)
    return numbers


def settings_of(header):
    """Options of the run and what the header says about it, by name."""
    about = ("version", "commit", "host", "machine", "device", "backend", "precision", "model", "parameters", "dataset",
             "ranks", "global_batch", "total_steps")
    return {**header.get("config", {}), **{name: header[name] for name in about if name in header}}
