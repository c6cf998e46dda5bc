# SPDX-License-Identifier: Apache-2.0
"""The checks of a draw, and their order."""
import shutil

import draws
import models
import program as programs
from case import (BEGUN, MODEL_FILE, OTHER_DEVICE, OTHER_LAYOUT, OTHER_RANKS, RESUMED, RUN, Case, uses_16_bits)
from output_checks import check_commands, check_exports, check_predict
from training_checks import (check_device, check_dry_run, check_end, check_kill, check_layout, check_ranks,
                             check_record)

ALWAYS = ("record", "kill", "device")  # checks of every draw that they fit


def examine(program, parts, only=None):
    """Trains by a draw, and checks it. Returns the message of a refusal, or None of a training that went well.

    Raises Failure of the first check that fails. `only` is the name of one check, which shrinking repeats."""
    for name in (RUN, RESUMED, OTHER_LAYOUT, OTHER_RANKS, OTHER_DEVICE, BEGUN):
        shutil.rmtree(program.folder / name, ignore_errors=True)
    for path in program.folder.glob("out.*"):
        path.unlink()
    program.forget()
    if draws.has_file(parts):
        (program.folder / MODEL_FILE).write_text(models.text_of(draws.features_of(parts)))
    case = Case(program, parts)
    if "weights" in parts:
        alike = {kind: value for kind, value in parts.items() if kind == "dataset" or kind.startswith("model")}
        begun = case.train(BEGUN, parts=alike | {"length": ["--steps", "2"]})
        check_end(begun, programs.Run(program.folder, BEGUN))
    dry = program.run(case.words(RUN, ["--dry-run"]))
    ended = case.train(RUN)
    if ended.code == 5 and parts.get("batch") == ["--batch-size", "1"]:
        return "diverges with batches of one sample, at the rate of the others"
    if ended.code == 5 and uses_16_bits(parts) and "no weight has changed" in ended.message:
        return "has too few steps to find its loss scale"
    check_end(ended, case.run)
    check_dry_run(dry, ended)
    if ended.code != 0:
        return ended.cause
    for name, check in CHECKS.items():
        if (only is None and name in (*ALWAYS, *parts["checks"])) or name == only:
            check(case)
    return None


# In the order in which they run. `end` and `dry run` precede them.
CHECKS = {"record": check_record, "kill": check_kill, "layout": check_layout, "ranks": check_ranks,
          "device": check_device, "exports": check_exports, "predict": check_predict, "commands": check_commands}
