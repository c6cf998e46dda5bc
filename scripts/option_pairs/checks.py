# SPDX-License-Identifier: Apache-2.0
"""What must hold of a training, whatever its options. Each check raises Failure with what it found."""
import json
import pathlib
import re
import shlex
import shutil
import signal
import time

import draws
import inputs
import models
import program as programs

MODEL_FILE = "model.toml"
# Run directories: undisturbed, interrupted, with other options of layout, on other ranks, on another device.
RUN, RESUMED, OTHER_LAYOUT, OTHER_RANKS, OTHER_DEVICE = "run", "resumed", "layout", "ranks", "device"
BEGUN = "begun"  # a short training of the same model, for --weights
ALWAYS = ("record", "kill", "device")  # checks of every draw that they fit
LARGEST_LOSS = 20  # of an evaluation; log(5) is chance, and only batches of one sample diverge at these rates
ONNX_PEER = pathlib.Path(__file__).parents[2] / "tests/train/app/commands/onnx_peer.py"
INTERNAL = re.compile(r"\w+\.(cpp|h|cuh?):\d+|null pointer|std::|assertion", re.IGNORECASE)


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


def evaluation_words(parts):
    """How to evaluate as the training did."""
    words = []
    for kind in ("precision", "backend", "device", "wire"):
        values = iter(parts.get(kind, []))
        for word, value in zip(values, values):
            if word in ("--precision", "--backend", "--device", "--simulate-gpu"):
                words += [word, value]
    return words


def uses_16_bits(parts):
    words = parts.get("precision", []) + parts.get("wire", [])
    return "fp16" in words or "bf16" in words or ("device" in parts and "fp32" not in words)


def evaluate(case, words, source=RUN):
    """The JSON of `gradring eval`."""
    ended = case.program.run(["eval", source, *evaluation_words(case.parts), *words, "--json"])
    if ended.code != 0:
        raise failure_of("record", f"eval {' '.join(words)}", ended)
    return json.loads(ended.out)


def differ(a, b, bound=1e-5):
    return a is None or b is None or abs(a - b) > bound * max(1, abs(a))


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


def without(parts, *kinds):
    return {kind: value for kind, value in parts.items() if kind not in kinds}


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
    other = without(parts, "ranks", "zero", "recompute") | {"batch": batch} | ({} if ranks > 1 else {"ranks": ["--nprocs", "2"]})
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


def own_tensors(case, averaged):
    """{name: (type, shape, bytes)} of the newest checkpoint."""
    checkpoint = case.run.newest_checkpoint()
    tensors = inputs.read_safetensors(checkpoint / "model.safetensors")
    if averaged:
        for name, value in inputs.read_safetensors(checkpoint / "state.safetensors").items():
            if name.startswith("ema."):
                tensors[name[4:]] = value
    return tensors


def export(case, name, ema):
    ended = case.program.run(["export", RUN, "--output", name, *ema])
    if ended.code != 0:
        raise failure_of("exports", f"export to {name}", ended)


def check_exports(case):
    """Exported weights are those of the checkpoint to the bit, and evaluate as the run does."""
    for ema in [[], ["--ema"]] if "ema" in case.parts else [[]]:
        name = f"out.{'ema' if ema else 'weights'}"
        export(case, f"{name}.safetensors", ema)
        export(case, f"{name}.pt", ema)
        export(case, f"{name}.onnx", ema)
        exported = inputs.read_safetensors(case.program.folder / f"{name}.safetensors")
        ours = own_tensors(case, ema)
        if exported.keys() != ours.keys():
            names = sorted(exported.keys() ^ ours.keys())
            raise Failure("exports", "other tensors", f"{name}.safetensors has other tensors: {names}")
        unequal = [tensor for tensor in ours if ours[tensor] != exported[tensor]]
        if unequal:
            raise Failure("exports", "values", f"{unequal[0]} of {name}.safetensors differs from the checkpoint's")
        expected = evaluate(case, ema)
        dataset = case.parts.get("dataset", draws.DEFAULTS["dataset"])
        model = ["--model", MODEL_FILE] if draws.has_file(case.parts) else \
            case.parts.get("model", draws.DEFAULTS["model"])
        for extension in ("safetensors", "pt"):
            if "--image-size" in dataset:
                break  # eval takes no --image-size
            found = evaluate(case, [*dataset, *model, "--normalize", normalization(case)], f"{name}.{extension}")
            if found["loss"] != expected["loss"]:
                raise Failure("exports", "loss",
                              f"eval {name}.{extension} finds loss {found['loss']}, the run {expected['loss']}")
        check_onnx(case, name, ema)


def check_onnx(case, name, ema):
    """onnxruntime gives the logits of `eval` in FP32, where a Python has it."""
    images = case.program.folder / data_folder(case) / "test.idx"
    if not case.program.onnx_python or not images.exists():
        return
    ended = case.program.run(["eval", RUN, "--precision", "fp32", "--device", "cpu", *ema, "--logits", "out.eval.npy",
                              "--force"])
    if ended.code != 0:
        raise failure_of("exports", "eval in FP32", ended)
    peer = case.program.run_python([ONNX_PEER, "logits", f"{name}.onnx", str(images), "out.onnx.npy"])
    if peer.code != 0:
        raise failure_of("exports", f"onnxruntime with {name}.onnx", peer)
    _, ours = inputs.read_npy(case.program.folder / "out.eval.npy")
    _, theirs = inputs.read_npy(case.program.folder / "out.onnx.npy")
    for a, b in zip(ours, theirs, strict=True):
        if differ(a, b, 1e-4):
            raise Failure("exports", "onnx", f"onnxruntime gives a logit {b} where eval gives {a}")


def data_folder(case):
    return case.parts.get("dataset", draws.DEFAULTS["dataset"])[3]


def normalization(case):
    """--normalize with what the run used."""
    text = (case.run.path / "config.resolved.toml").read_text()
    return re.search(r'^normalize = "(.*)"', text, re.MULTILINE)[1]


def check_predict(case):
    """`predict` of the test set's images as files gives the logits of `eval`."""
    folder = case.program.folder / data_folder(case)
    images = sorted((folder / "png").glob("*.png")) or sorted((folder / "test").glob("*/*.png"))
    if not images or data_folder(case) == "rgba":
        return
    names = [str(image.relative_to(case.program.folder)) for image in images]
    words = evaluation_words(case.parts)
    for ema in [[], ["--ema"]] if "ema" in case.parts else [[]]:
        evaluate(case, [*ema, "--logits", "out.eval.npy", "--force"])
        ended = case.program.run(["predict", RUN, *words, *ema, "--logits", "out.predict.npy", "--force", *names])
        if ended.code != 0:
            raise failure_of("predict", "predict", ended)
        shape, expected = inputs.read_npy(case.program.folder / "out.eval.npy")
        found_shape, found = inputs.read_npy(case.program.folder / "out.predict.npy")
        if shape != found_shape:
            raise Failure("predict", "shape", f"predict gives logits of {found_shape}, eval of {shape}")
        bound = 1e-4 if not words else 2e-2
        for i, (a, b) in enumerate(zip(expected, found)):
            if differ(a, b, bound):
                raise Failure("predict", "logits", f"predict gives logit {b} to {names[i // shape[1]]}, eval {a}")


def check_commands(case):
    """What reads a run, or takes the options of a training, accepts this one."""
    parts = case.parts
    options = draws.words_of(without(parts, "nan", "launcher"), MODEL_FILE)
    ranks = ["--nprocs", str(case.ranks())] if "launcher" in parts else []
    commands = [["runs", "show", RUN], ["ckpt", "verify", RUN], ["report", RUN, "-o", "out.html"],
                ["export", RUN, "--output", "out.card.onnx", "--card", "out.card.md"], ["plan", *options, *ranks]]
    if "1" not in case.parts.get("batch", []):  # losses of single samples may seem to diverge
        commands.append(["lr-find", *options, *ranks, "--steps", "4"])
    for words in commands:
        ended = case.program.run(words)
        if ended.code != 0:
            raise failure_of("commands", " ".join(words[:2]), ended)


# In the order in which they run. `end` and `dry run` precede them.
CHECKS = {"record": check_record, "kill": check_kill, "layout": check_layout, "ranks": check_ranks,
          "device": check_device, "exports": check_exports, "predict": check_predict, "commands": check_commands}
