#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs a run of gradring to Weights & Biases.

Reads metrics.jsonl (docs/metrics.md). The header becomes configuration, name and tags; train, eval and ranks events
become metrics by step; the end becomes the state of the run. WANDB_MODE=offline writes to the disk instead, for
`wandb sync`.
"""
import pathlib
import sys

from run_events import imported, metrics_file, numbers_of, parser_of, read_events, settings_of

EXIT_CODES = {"finished": 0, "interrupted": 130}  # of the end's outcome; others: 1


def arguments():
    parser = parser_of(__doc__)
    parser.add_argument("--project", default="gradring", help="project (default %(default)s)")
    parser.add_argument("--entity", help="user or team (default: the one that is logged in)")
    parser.add_argument("--dir", default=".", help="folder in which wandb/ is written (default %(default)s)")
    return parser.parse_args()


def start(wandb, given, path, header):
    """Begins a run from the first header."""
    run = wandb.init(project=given.project, entity=given.entity, dir=given.dir, config=settings_of(header),
                     tags=header.get("tags") or None,
                     name=given.name or header.get("name") or pathlib.Path(path).resolve().parent.name)
    # Each metric is plotted over the step of the training, whatever the number of calls of log().
    run.define_metric("step")
    run.define_metric("*", step_metric="step")
    return run


def main():
    given = arguments()
    path = metrics_file(given.run)
    wandb = imported("wandb", "wandb")
    run, end, logged = None, None, 0
    for event in read_events(path, given.follow):
        if event["event"] == "header":
            if run is None:
                run = start(wandb, given, path, event)
            else:  # the run was resumed, perhaps with other options
                run.config.update(settings_of(event), allow_val_change=True)
                end = None  # of the earlier start
        elif event["event"] == "end":
            end = event
        elif numbers := numbers_of(event):
            run.log({**numbers, "step": event["step"], "time": event["time"]})
            logged += 1
    if run is None:
        sys.exit(f"{sys.argv[0]}: {path} is empty: the run has not begun")
    run.summary["outcome"] = end["outcome"] if end else "running or killed"
    run.finish(exit_code=EXIT_CODES.get(end["outcome"], 1) if end else 1)
    print(f"logged {logged} events of {path} to project {given.project}; "
          f"the run {end['outcome'] if end else 'has no end: it is running, or was killed'}")


if __name__ == "__main__":
    main()
