# SPDX-License-Identifier: Apache-2.0
"""What must hold of a training by itself, and beside the same training on other ranks, interrupted or on a CPU."""
import re
import shlex
import signal
import time

import draws
import program as programs
from case import (OTHER_DEVICE, OTHER_LAYOUT, OTHER_RANKS, RESUMED, Failure, differ, evaluate, expect_equal,
                  failure_of, uses_16_bits, without)

LARGEST_LOSS = 20  # of an evaluation; log(5) is chance, and only batches of one sample diverge at these rates
INTERNAL = re.compile(r"\w+\.(cpp|h|cuh?):\d+|null pointer|std::|assertion", re.IGNORECASE)


def check_end(ended, run):
    """A training ends with 0 and finite losses, or is refused before its first step with a message and code 2 or 4."""
    losses = run.losses()
    if ended.code == 0:
        if not losses:
            raise Failure("end", "no step", "exit code 0, but metrics.jsonl has no step")
        bad = [step for step, loss in losses.items() if loss is None]
        if bad:
            raise Failure("end", "not finite", f"exit code 0, but the loss of step {bad[0]} is not finite")
        if run.summary().get("outcome") != "finished":
            raise Failure("end", "outcome", f"exit code 0, but the outcome is {run.summary().get('outcome')}")
        return
    if ended.code not in (2, 4):
        raise failure_of("end", "the training", ended)
    if losses:
        raise Failure("end", "refused late", f"refused after step {max(losses)}, not before the first: {ended.message}")
    if not ended.message.startswith("gradring"):
        raise Failure("end", "no message", f"refused without a message: {ended.message}")
    if INTERNAL.search(ended.err):
        raise Failure("end", "internal message", f"refused with an internal message: {ended.message}")


def check_dry_run(dry, ended):
    """--dry-run accepts what the training accepts."""
    if (dry.code == 0) != (ended.code == 0):
        raise Failure("dry run", f"code {dry.code} and {ended.code}: {(dry.cause or ended.cause)[:50]}",
                      f"--dry-run ends with {dry.code} ({dry.message}), "
                      f"the training with {ended.code} ({ended.message})")


def check_record(case):
    """`eval` finds what the training recorded of its newest checkpoint, on each split and for the averaged weights."""
    step = int(case.run.newest_checkpoint().name.split("-")[1])
    splits = ["test", "validation"] if "split" in case.parts else ["test"]
    for split in splits:
        recorded = [event for event in case.run.evaluations(split) if event["step"] == step]
        if not recorded:
            raise Failure("record", "none", f"no evaluation of the {split} set after step {step} is recorded")
        event = recorded[-1]
        for loss in ("loss", "ema_loss"):
            if (event.get(loss) or 0) > LARGEST_LOSS and "1" not in case.parts.get("batch", []):
                raise Failure("record", f"{loss} explodes", f"{loss} of the {split} set is {event[loss]}")
        for words, prefix in (([], ""), (["--ema"], "ema_")):
            if prefix and "ema" not in case.parts:
                continue
            found = evaluate(case, ["--split", split, *words])
            # eval has another batch size, and no --conv and --gemm: other kernels round 16-bit numbers differently.
            bound = (1e-3 if "backend" in case.parts else 1e-4) if uses_16_bits(case.parts) else 1e-5
            for figure, within in (("accuracy", 1e-5), ("loss", bound)):
                if differ(found[figure], event.get(prefix + figure), within):
                    raise Failure("record", prefix + figure,
                                  f"{prefix}{figure} of the {split} set is {event.get(prefix + figure)} in "
                                  f"metrics.jsonl, {found[figure]} by eval")


def ending_of(case):
    return max(case.run.losses())


def interrupt(case, how, step, more):
    """Ends a training early in RESUMED. Returns what ended, or None where this way does not fit the draw."""
    parts = case.parts
    rank = step % case.ranks()
    if how == "steps":
        if "schedule" in parts:  # spans all steps, or warms up for more than these
            return None
        parts = without(parts, "length") | {"length": ["--steps", str(step)]}
        return expect_code(case.train(RESUMED, more, parts), 0)
    if how == "term":
        words = case.words(RESUMED, [*more, "--inject", f"delay:rank={rank},step={step},ms=2000"])
        process = case.program.start(words)
        run = programs.Run(case.program.folder, RESUMED)
        last = time.monotonic() + programs.LONGEST
        while not run.events("fault") and process.poll() is None and time.monotonic() < last:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        return expect_code(case.program.wait(process, words), 143)
    fault = f"exit:rank={rank},step={step},code=7" if how == "exit" else f"kill:rank={rank},step={step}"
    ended = case.train(RESUMED, [*more, "--inject", fault])
    return expect_code(ended, 7 if how == "exit" else 137)


def expect_code(ended, code):
    if ended.code != code:
        raise failure_of("kill", f"the training that is to be interrupted, with {code},", ended)
    return ended


def restarted(case, step, more):
    """A launcher restarts the ranks after one of them ended in `step`."""
    ranks = case.ranks()
    launch = ["launch", "--nproc-per-node", str(ranks), "--max-restarts", "1", "--backoff", "0",
              "--min-progress-steps", "0"]
    parts = case.parts if "--data-parallel" in case.parts.get("ranks", []) else without(case.parts, "ranks")
    fault = f"exit:rank={step % ranks},step={step},code=7"
    return case.train(RESUMED, [*more, "--resume", "auto", "--inject", fault], parts, launch)


def resume(case, interrupted, how, more):
    """Goes on with the training in RESUMED."""
    parts = case.parts
    printed = re.search(r"to resume:\n((?:.*\\\n)*.*)", interrupted.err)
    if printed and how == "same":
        words = shlex.split(printed[1].replace("\\\n", " "))
        return case.program.run(words[1:])
    if how == "config":
        length = parts.get("length", draws.DEFAULTS["length"])
        words = ["train", "--config", f"{RESUMED}/config.resolved.toml", "--run-dir", RESUMED, "--inject",
                 parts["nan"][-1] if "nan" in parts else "", "--resume", "auto", *length,
                 *([] if "--steps" in length else ["--steps", "0"]), *parts.get("ranks", [])]
        return case.program.run([*parts.get("launcher", []), *words])
    if how == "another layout" and "--data-parallel" not in parts.get("ranks", []):
        if "--sync-every-pass" not in parts.get("zero", []):
            parts = without(parts, "zero") if "zero" in parts else parts | {"zero": ["--zero", "1"]}
        parts = without(parts, "recompute") if "recompute" in parts else \
            parts | {"recompute": ["--checkpoint-activations", "2"]}
    if how == "other ranks" and "reproducible" in parts and "launcher" not in parts:
        alone = without(parts, "ranks", "recompute")  # a budget of activations may fit one number of ranks only
        parts = alone if "ranks" in parts else alone | {"ranks": ["--nprocs", "2"]}
    return case.train(RESUMED, [*more, "--resume", "auto"], parts)


def check_kill(case):
    """A training that is interrupted and resumed comes to the bits of the undisturbed one."""
    if "kill" not in case.parts:
        return
    how = case.parts["kill"]
    way, step = case.parts.get("resume", "same"), case.parts.get("step", 5)
    last = ending_of(case)
    if last < 2 or (how == "restart" and "nan" in case.parts):  # a fault happens in the first attempt only
        return
    step = (1 if how == "steps" else 2) + step % (last - 1)
    more = [] if "save" in case.parts else ["--save-every-steps", "3"]
    if how == "restart":
        ended = restarted(case, step, more)
    else:
        interrupted = interrupt(case, how, step, more)
        if interrupted is None:
            return
        ended = resume(case, interrupted, way, more)
    if ended.code != 0:
        raise failure_of("kill", "the resume", ended)
    expect_equal(case, RESUMED, "kill", f"interrupted ({how}) in step {step} and resumed ({way}), the training")


def check_layout(case):
    """Options that say how work is divided, watched or saved change no bit."""
    parts = case.parts
    if "--data-parallel" in parts.get("ranks", []) or "--sync-every-pass" in parts.get("zero", []):
        return
    kinds = draws.LAYOUT + draws.NEUTRAL
    if case.ranks() > 2 and "reproducible" not in parts:  # sums of three ranks depend on where a bucket is divided
        kinds = tuple(kind for kind in kinds if kind not in ("buckets", "comm"))
    if case.ranks() == 1 and "device" in parts and "reproducible" not in parts:  # docs/models.md: to rounding there
        kinds = tuple(kind for kind in kinds if kind not in ("buckets", "zero"))
    if "clip" in parts:  # the sum of a norm follows the padding of buckets
        kinds = tuple(kind for kind in kinds if kind != "buckets")
    other = without(parts, *kinds)
    if other == parts:
        other = parts | {"recompute": ["--checkpoint-activations", "2"], "eval_every": ["--eval-every", "3"],
                         "loader": ["--loader-threads", "2"], "save": ["--save-every-steps", "5"]}
    ended = case.train(OTHER_LAYOUT, parts=other)
    changed = ", ".join(kind for kind in sorted(kinds) if parts.get(kind) != other.get(kind))
    if ended.code != 0:
        raise failure_of("layout", f"with other {changed} the training", ended)
    expect_equal(case, OTHER_LAYOUT, "layout", f"with other {changed} the training")


def check_ranks(case):
    """Other ranks give equal bits with --reproducible, and losses equal to rounding where docs/models.md says so."""
    parts = case.parts
    if "launcher" in parts or "--data-parallel" in parts.get("ranks", []):
        return
    ranks = case.ranks()
    if "reproducible" in parts:
        other = without(parts, "ranks", "nan", "recompute") | ({} if ranks > 1 else {"ranks": ["--nprocs", "2"]})
        if "nan" in parts:
            return
        ended = case.train(OTHER_RANKS, parts=other)
        if ended.code != 0:
            raise failure_of("ranks", "on another number of ranks the training", ended)
        expect_equal(case, OTHER_RANKS, "ranks", "on another number of ranks the training")
        return
    if (draws.has_norm(parts) and "sync_batchnorm" not in parts) or any(
            kind in parts for kind in ("precision", "wire", "sampler", "nan", "device", "mean", "backend")):
        return
    batch = list(parts.get("batch", draws.DEFAULTS["batch"]))
    size = int(batch[1])
    if "--global-batch" in batch or (ranks == 1 and size % 2):
        return
    batch[1] = str(size * ranks if ranks > 1 else size // 2)
    fewer_or_more = {} if ranks > 1 else {"ranks": ["--nprocs", "2"]}
    other = without(parts, "ranks", "zero", "recompute") | {"batch": batch} | fewer_or_more
    ended = case.train(OTHER_RANKS, parts=other)
    if ended.code != 0:
        raise failure_of("ranks", "with as many samples a step on other ranks the training", ended)
    ours, theirs = case.run.losses(), programs.Run(case.program.folder, OTHER_RANKS).losses()
    header = case.run.events("header")[0]
    for step in range(1, min(8, header["steps_per_epoch"] - 1, header["total_steps"]) + 1):
        if differ(ours[step], theirs.get(step), 1e-3):
            raise Failure("ranks", "losses", f"with as many samples a step on other ranks the loss of step {step} is "
                                             f"{theirs.get(step)}, not {ours[step]}")


def check_device(case):
    """On a simulated GPU the losses are those of a CPU, to the rounding of 16 bits: also the draws of augmentation."""
    if "device" not in case.parts:
        return
    # A GPU's default of 16 bits needs half of the memory: a budget for it may be too small for a CPU.
    ended = case.train(OTHER_DEVICE, parts=without(case.parts, "device", "recompute"))
    if ended.code != 0:
        raise failure_of("device", "on a CPU the training", ended)
    ours, theirs = case.run.losses(), programs.Run(case.program.folder, OTHER_DEVICE).losses()
    for step in sorted(ours)[:3]:
        if differ(ours[step], theirs.get(step), 3e-2):
            raise Failure("device", "losses", f"the loss of step {step} is {ours[step]}, on a CPU {theirs.get(step)}")
