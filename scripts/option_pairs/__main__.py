# SPDX-License-Identifier: Apache-2.0
"""Draws trainings and checks them until the time is over: scripts/option_pairs.sh --help."""
import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import checks
import draws
import inputs
import program as programs
from case import MODEL_FILE, Failure

SKIPPED = ("checks",)  # of a draw: what says how it is examined


def are_alike(a, b):
    return (a.check, a.how) == (b.check, b.how)


def fails(program, parts, failure):
    """Whether a smaller draw fails in the check of `failure`, and how."""
    only = failure.check if failure.check in checks.CHECKS else "none"
    try:
        checks.examine(program, parts, only)
    except Failure as found:
        return found if are_alike(found, failure) else None
    return None


def shrunk(program, parts, failure):
    """The draw without the parts that the failure does not need, removed one at a time, and its own failure."""
    again = True
    while again:
        again = False
        for kind in [kind for kind in parts if kind not in SKIPPED]:
            smaller = {name: value for name, value in parts.items() if name != kind}
            found = fails(program, smaller, failure)
            if found:
                parts, failure, again = smaller, found, True
    return parts, failure


def is_like(parts, failure, known, found):
    """Whether a draw fails as a smaller one did: with its kinds, and with their values where no message says how."""
    if (found.check, found.how) != (failure.check, failure.how) or not known.keys() <= parts.keys():
        return False
    return found.how.startswith("code") or all(parts[kind] == known[kind] for kind in known if kind not in SKIPPED)


class Soak:
    """The failures so far, and what was drawn."""

    def __init__(self, program, log):
        self.program, self.log = program, log
        self.failures = []  # (parts, Failure), shrunk
        self.outcomes = collections.Counter()
        self.refusals = collections.Counter()

    def say(self, text):
        print(text, file=self.log, flush=True)

    def draw(self, parts):
        """Examines a draw; shrinks and reports its failure unless a draw that failed before is part of it."""
        try:
            refusal = checks.examine(self.program, parts)
        except Failure as failure:
            self.outcomes["failed"] += 1
            if any(is_like(parts, failure, known, found) for known, found in self.failures):
                self.outcomes["failed as before"] += 1
                return
            self.report(*shrunk(self.program, parts, failure))
            return
        self.outcomes["refused" if refusal else "trained"] += 1
        if refusal:
            self.refusals[refusal] += 1

    def report(self, parts, failure):
        """Prints the failure of a draw with the commands that lead to it."""
        self.failures.append((parts, failure))
        fails(self.program, parts, failure)  # so that the commands and runs are those of this draw
        case = json.dumps({kind: value for kind, value in parts.items() if kind not in SKIPPED})
        self.say(f"\nFAILED {failure.check}: {failure.text}\n  --repeat '{case}'")
        for command in self.program.commands:
            self.say(f"  {command}")
        if draws.has_file(parts):
            text = (self.program.folder / MODEL_FILE).read_text()
            self.say(f"  with {MODEL_FILE}:\n    " + text.strip().replace("\n", "\n    "))

    def count(self, seconds):
        self.say(f"\n{sum(self.outcomes[kind] for kind in ('trained', 'refused', 'failed'))} draws, "
                 f"{self.program.trainings} trainings in {seconds:.0f} s: {self.outcomes['trained']} trained, "
                 f"{self.outcomes['refused']} refused, {self.outcomes['failed']} failed "
                 f"({self.outcomes['failed as before']} as one before), {len(self.failures)} reported")

    def list_refusals(self):
        for message, count in self.refusals.most_common():
            self.say(f"{count:5}  refused: {message}")


def python_with_onnx():
    """The Python in which tests look for packages (tests/README.md), if it has onnx and onnxruntime; else None."""
    python = os.environ.get("GRADRING_TEST_PYTHON") or "python3"
    found = subprocess.run([python, "-c", "import onnx, onnxruntime"], capture_output=True, check=False)
    return python if found.returncode == 0 else None


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument("--repeat", default="")
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("program", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = arguments()
    began = time.monotonic()
    inputs.write_all(options.folder)
    program = programs.Program(options.program, options.folder, python_with_onnx())
    has_gpu = program.run(["train", *draws.OPTIONS["device"][0], "--steps", "1", "--dry-run"]).code == 0
    soak = Soak(program, sys.stdout)
    if options.repeat:
        soak.draw(json.loads(options.repeat) | {"checks": list(checks.CHECKS)})
    else:
        soak.say(f"seed {options.seed}; simulated GPU: {'yes' if has_gpu else 'no, built without CUDA'}; "
                 f"onnxruntime: {'yes' if program.onnx_python else 'no, not installed'}")
        draw = random.Random(options.seed)
        count = 0
        while time.monotonic() - began < 60 * options.minutes and (options.draws == 0 or count < options.draws):
            parts = draws.drawn(draw, has_gpu)
            parts["checks"] = draw.sample([name for name in checks.CHECKS if name not in checks.ALWAYS], 3)
            soak.draw(parts)
            count += 1
            if count % 100 == 0:
                soak.count(time.monotonic() - began)
    soak.count(time.monotonic() - began)
    soak.list_refusals()
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
