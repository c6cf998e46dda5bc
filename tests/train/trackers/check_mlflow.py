# SPDX-License-Identifier: Apache-2.0
"""Logs a run by scripts/to_mlflow.py into files, and compares what MLflow reads with metrics.jsonl: check_mlflow.py SCRIPT RUN FOLDER.

Exit codes: 0; 1 a difference; 77 this Python has no mlflow."""
import json
import os
import pathlib
import subprocess
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # 3.7 and later refuse one otherwise
try:
    import mlflow
except ImportError:
    print(f"{sys.executable} does not import mlflow")
    sys.exit(77)


def main():
    script, run, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    store = f"file:{folder}"
    subprocess.run([sys.executable, script, str(run), "--tracking-uri", store, "--experiment", "tests"], check=True)
    client = mlflow.MlflowClient(store)
    logged = client.search_runs([client.get_experiment_by_name("tests").experiment_id])[0]
    events = [json.loads(line) for line in open(run / "metrics.jsonl")]
    header, end = events[0], events[-1]
    assert logged.info.run_name == header["name"] and logged.info.status == "FINISHED", logged.info
    assert logged.info.end_time == int(1000 * end["time"]), logged.info
    assert logged.data.params["lr"] == str(header["config"]["lr"]), logged.data.params
    assert logged.data.tags["gradring.tags"] == ",".join(header["tags"]), logged.data.tags
    for kind, member, name in (("train", "loss", "train/loss"), ("eval", "accuracy", "test/accuracy")):
        history = [(each.step, each.timestamp, each.value) for each in client.get_metric_history(logged.info.run_id, name)]
        expected = [(event["step"], int(1000 * event["time"]), event[member]) for event in events if event["event"] == kind]
        assert sorted(history) == expected, (name, history, expected)
    ranks = [event["seconds"][1] for event in events if event["event"] == "ranks"]
    found = [each.value for each in client.get_metric_history(logged.info.run_id, "ranks/seconds/1")]
    assert sorted(found) == sorted(ranks), (found, ranks)


main()
