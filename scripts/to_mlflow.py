#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs a run of gradring to MLflow.

Reads metrics.jsonl (docs/metrics.md). The header becomes parameters, name and tags; train, eval and ranks events become
metrics by step, with their times; the end becomes the status of the run. Needs mlflow or mlflow-skinny.
"""
import pathlib
import sys

from run_events import imported, metrics_file, numbers_of, parser_of, read_events, settings_of

MOST_METRICS = 1000  # of a call of log_batch
MOST_PARAMETERS = 100
LONGEST_VALUE = 500  # characters of a parameter
STATUS = {"finished": "FINISHED", "interrupted": "KILLED"}  # of the end's outcome; others: FAILED


def arguments():
    parser = parser_of(__doc__)
    parser.add_argument("--experiment", default="gradring", help="experiment, created if missing (default %(default)s)")
    parser.add_argument("--tracking-uri", help="server, or sqlite:///FILE (default: MLFLOW_TRACKING_URI, else MLflow's)")
    return parser.parse_args()


class MlflowRun:
    """A run that is begun by the first header; keeps metrics until there are enough for a call."""

    def __init__(self, mlflow, given, path):
        self.entities, self.client = mlflow.entities, mlflow.MlflowClient(tracking_uri=given.tracking_uri)
        self.given, self.path = given, path
        self.id, self.metrics, self.logged = None, [], 0

    def begin(self, header):
        if self.id is not None:  # a resume: MLflow's parameters cannot change
            return
        experiment = self.client.get_experiment_by_name(self.given.experiment)
        experiment_id = experiment.experiment_id if experiment else self.client.create_experiment(self.given.experiment)
        name = self.given.name or header.get("name") or pathlib.Path(self.path).resolve().parent.name
        tags = {"gradring.command": " ".join(header.get("command", [])), "gradring.tags": ",".join(header.get("tags", []))}
        self.id = self.client.create_run(experiment_id, start_time=milliseconds(header), tags=tags, run_name=name).info.run_id
        parameters = [self.entities.Param(name, str(value)[:LONGEST_VALUE]) for name, value in settings_of(header).items()]
        for i in range(0, len(parameters), MOST_PARAMETERS):
            self.client.log_batch(self.id, params=parameters[i:i + MOST_PARAMETERS])

    def add(self, event):
        self.metrics += [self.entities.Metric(name, value, milliseconds(event), event["step"])
                         for name, value in numbers_of(event).items()]
        self.logged += 1
        if self.given.follow or len(self.metrics) >= MOST_METRICS:
            self.flush()

    def flush(self):
        while self.metrics:
            self.client.log_batch(self.id, metrics=self.metrics[:MOST_METRICS])
            self.metrics = self.metrics[MOST_METRICS:]

    def end(self, event):
        """`event` is the end; None of a run that has none."""
        self.flush()
        if event:
            self.client.set_tag(self.id, "gradring.outcome", event["outcome"])
            self.client.set_terminated(self.id, STATUS.get(event["outcome"], "FAILED"), end_time=milliseconds(event))


def milliseconds(event):
    return int(1000 * event["time"])


def log(mlflow, given, path):
    """Returns the run and its end, None if it has none."""
    run, end = MlflowRun(mlflow, given, path), None
    for event in read_events(path, given.follow):
        if event["event"] == "header":
            run.begin(event)
            end = None  # of an earlier start
        elif event["event"] == "end":
            end = event
        elif numbers_of(event):
            run.add(event)
    if run.id is None:
        sys.exit(f"{sys.argv[0]}: {path} is empty: the run has not begun")
    run.end(end)
    return run, end


def main():
    given = arguments()
    path = metrics_file(given.run)
    mlflow = imported("mlflow", "mlflow-skinny")
    try:
        run, end = log(mlflow, given, path)
    except mlflow.exceptions.MlflowException as error:
        sys.exit(f"{sys.argv[0]}: MLflow failed: {error}")
    print(f"logged {run.logged} events of {path} as run {run.id}; "
          f"the run {end['outcome'] if end else 'has no end: it is running, or was killed'}")


if __name__ == "__main__":
    main()
