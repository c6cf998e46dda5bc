# SPDX-License-Identifier: Apache-2.0
"""Runs the program and keeps what it printed, and reads what a training has recorded."""
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess

LONGEST = 120  # seconds, of a command that does not hang
LONGEST_SIMULATED = 400


class Ended:
    """A command that has ended: its exit code, 124 if it hung, and its output."""

    def __init__(self, words, code, out, err):
        self.words, self.code, self.out, self.err = words, code, out, err

    @property
    def message(self):
        """The last line on stderr, in which programs state why they failed."""
        lines = [line for line in self.err.strip().split("\n") if line.strip()]
        return lines[-1].strip() if lines else ""

    @property
    def cause(self):
        """The message without the command, the rank and figures, which differ among trainings that fail alike."""
        text = re.sub(r"^gradring[^:]*: |^.*the first to fail[^:]*: ", "", self.message)
        return re.sub(r"[\d.]+(e-?\d+)?", "N", text)


class Program:
    """The program in a folder of its own, which holds the data and the runs."""

    def __init__(self, path, folder, onnx_python=None):
        self.path, self.folder, self.onnx_python = path, folder, onnx_python
        self.trainings = 0
        self.commands = []  # since forget(): what a report of a failure shows
        foreign = ("GRADRING_", "OMP_", "SLURM_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
            kept.pop(name, None)
        self.environment = kept | {"HOME": str(folder), "TMPDIR": str(folder / "tmp"), "OMP_NUM_THREADS": "1",
                                   "GRADRING_CACHE_DIR": str(folder / "cache")}
        (folder / "tmp").mkdir(exist_ok=True)

    def start(self, words):
        self.commands.append(shlex.join(["gradring", *words]))
        if "train" in words and "--dry-run" not in words:
            self.trainings += 1
        return self.start_any([self.path, *words])

    def start_any(self, command):
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                errors="replace", start_new_session=True)

    def wait(self, process, words):
        limit = LONGEST_SIMULATED if "--simulate-gpu" in words else LONGEST
        try:
            out, err = process.communicate(timeout=limit)
            return Ended(words, process.returncode if process.returncode >= 0 else 128 - process.returncode, out, err)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return Ended(words, 124, out, err + f"\nhangs: not ended after {limit} s")

    def run(self, words):
        return self.wait(self.start(words), words)

    def run_python(self, words):
        """Runs a script with the Python that has onnxruntime."""
        self.commands.append(shlex.join(["python3", *map(str, words)]))
        return self.wait(self.start_any([self.onnx_python, "-B", *words]), words)

    def forget(self):
        self.commands = []


class Run:
    """The run directory of a training."""

    def __init__(self, folder, name):
        self.name = name
        self.path = pathlib.Path(folder) / name

    def events(self, kind=None):
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return []
        lines = [json.loads(line) for line in path.read_text().split("\n") if line.endswith("}")]
        return [line for line in lines if kind in (None, line["event"])]

    def losses(self):
        """{step: training loss}"""
        return {event["step"]: event["loss"] for event in self.events("train")}

    def evaluations(self, split="test"):
        return [event for event in self.events("eval") if event.get("split", "test") == split]

    def summary(self):
        path = self.path / "summary.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def newest_checkpoint(self):
        return (self.path / "checkpoints" / "latest").resolve()
