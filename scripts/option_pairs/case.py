# SPDX-License-Identifier: Apache-2.0
"""One draw: its trainings, and what all checks compare them by."""
import json

import draws
import program as programs

MODEL_FILE = "model.toml"
# Run directories: undisturbed, interrupted, with other options of layout, on other ranks, on another device.
RUN, RESUMED, OTHER_LAYOUT, OTHER_RANKS, OTHER_DEVICE = "run", "resumed", "layout", "ranks", "device"
BEGUN = "begun"  # a short training of the same model, for --weights


class Failure(Exception):
    """A promise that was not kept: by which check, how in a few words that do not depend on the draw, and in full."""

    def __init__(self, check, how, text):
        super().__init__(text)
        self.check, self.how, self.text = check, how, text


def failure_of(check, what, ended):
    """The failure of a command that ended otherwise than it should have."""
    return Failure(check, f"code {ended.code}: {ended.cause[:50]}", f"{what} ends with {ended.code}: {ended.message}")


class Case:
    """One draw: its undisturbed training and what is compared with it."""

    def __init__(self, program, parts):
        self.program, self.parts = program, parts
        self.run = programs.Run(program.folder, RUN)
        self.refusal = None

    def train(self, run, more=(), parts=None, launch=None):
        """Ends a training in directory `run`; `parts` are those of the draw unless given."""
        return self.program.run(self.words(run, more, parts, launch))

    def words(self, run, more=(), parts=None, launch=None):
        parts = self.parts if parts is None else parts
        launch = parts.get("launcher", []) if launch is None else launch
        return [*launch, "train", "--run-dir", run, "--progress", "none", *draws.words_of(parts, MODEL_FILE), *more]

    def ranks(self):
        words = self.parts.get("ranks", []) + self.parts.get("launcher", [])
        return int(words[-1]) if "--nprocs" in words or "--nproc-per-node" in words else 1


def without(parts, *kinds):
    return {kind: value for kind, value in parts.items() if kind not in kinds}


def differ(a, b, bound=1e-5):
    return a is None or b is None or abs(a - b) > bound * max(1, abs(a))


def uses_16_bits(parts):
    words = parts.get("precision", []) + parts.get("wire", [])
    return "fp16" in words or "bf16" in words or ("device" in parts and "fp32" not in words)


def expect_equal(case, other, check, what):
    """Two runs have the same weights, state, losses and evaluations to the last bit."""
    diff = case.program.run(["ckpt", "diff", RUN, other, "--tensors-only"])
    if diff.code != 0:
        lines = [line for line in diff.out.split("\n")[2:] if line.strip()] or [diff.message]
        raise Failure(check, "tensors", f"{what} has other tensors: {lines[0].strip()}")
    ours, theirs = case.run.losses(), programs.Run(case.program.folder, other).losses()
    unequal = [step for step in sorted(ours.keys() | theirs.keys()) if ours.get(step) != theirs.get(step)]
    if unequal:
        step = unequal[0]
        raise Failure(check, "losses", f"{what} has loss {theirs.get(step)} in step {step}, not {ours.get(step)}")


def evaluation_words(parts):
    """How to evaluate as the training did."""
    words = []
    for kind in ("precision", "backend", "device", "wire"):
        values = iter(parts.get(kind, []))
        for word, value in zip(values, values):
            if word in ("--precision", "--backend", "--device", "--simulate-gpu"):
                words += [word, value]
    return words


def evaluate(case, words, source=RUN):
    """The JSON of `gradring eval`."""
    ended = case.program.run(["eval", source, *evaluation_words(case.parts), *words, "--json"])
    if ended.code != 0:
        raise failure_of("record", f"eval {' '.join(words)}", ended)
    return json.loads(ended.out)
