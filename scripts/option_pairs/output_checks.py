# SPDX-License-Identifier: Apache-2.0
"""What must hold of the outputs of a training: exports, predictions, and what other commands say of it."""
import pathlib
import re

import draws
import inputs
from case import MODEL_FILE, RUN, Failure, differ, evaluate, evaluation_words, failure_of, without

ONNX_PEER = pathlib.Path(__file__).parents[2] / "tests/train/app/commands/onnx_peer.py"


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
