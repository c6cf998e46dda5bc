# SPDX-License-Identifier: Apache-2.0
"""What a draw consists of, and how one is drawn: {kind: value}, where only what is not the default has an entry.

The value of a kind in OPTIONS is a list of words of the command line. `model` is a built-in model's name or the
features of a model file, and each feature counts as a part of its own, `model.norm` for example. `kill`, `step` and
`resume` say how and where the training is interrupted, and how it is resumed.
"""
import models

# What a training has where a draw has no other value of that kind.
DEFAULTS = {
    "dataset": ["--dataset", "arrays", "--data-dir", "rgb"],
    "model": ["--model", "lenet5"],
    "batch": ["--batch-size", "12"],
    "length": ["--epochs", "2"],
    "optimizer": ["--optimizer", "sgd", "--lr", "0.02", "--momentum", "0.9"],
    "threads": ["--threads", "1"],
}

OPTIONS = {
    "dataset": [
        ["--dataset", "arrays", "--data-dir", "grey"],
        ["--dataset", "arrays", "--data-dir", "rgba"],
        ["--dataset", "idx", "--data-dir", "idx"],
        ["--dataset", "folder", "--data-dir", "images", "--image-size", "20"],
        ["--dataset", "folder", "--data-dir", "images", "--image-size", "20", "--resize", "24"],
        ["--dataset", "folder", "--data-dir", "broken", "--image-size", "18", "--broken", "skip"],
    ],
    "batch": [
        ["--batch-size", "1"],
        ["--batch-size", "5"],
        ["--batch-size", "16"],
        ["--batch-size", "25"],
        ["--batch-size", "4", "--global-batch", "24"],
        ["--batch-size", "12", "--accumulate", "2"],
        ["--batch-size", "5", "--accumulate", "3"],
    ],
    "length": [["--epochs", "3"], ["--steps", "11"], ["--epochs", "4", "--steps", "20"], ["--steps", "1"]],
    "optimizer": [
        ["--optimizer", "sgd", "--lr", "0.05"],
        ["--optimizer", "sgd", "--lr", "0.02", "--momentum", "0.9", "--nesterov", "--weight-decay", "0.01"],
        ["--optimizer", "sgd", "--lr", "0.02", "--momentum", "0.9", "--dampening", "0.1"],
        ["--optimizer", "sgdw", "--lr", "0.02", "--momentum", "0.9", "--weight-decay", "0.01"],
        ["--optimizer", "adam", "--lr", "0.003", "--weight-decay", "0.01"],
        ["--optimizer", "adamw", "--lr", "0.003", "--weight-decay", "0.05", "--betas", "0.8,0.95"],
        ["--optimizer", "muon", "--lr", "0.02", "--momentum", "0.9", "--nesterov"],
        ["--optimizer", "muon", "--lr", "0.05", "--momentum", "0.6", "--muon-scale", "normalize", "--muon-steps", "3"],
        ["--optimizer", "muon", "--lr", "0.003", "--weight-decay", "0.1", "--muon-scale", "match-rms-adamw"],
    ],
    "groups": [
        ["--group", "*.bias:lr=0.01"],
        ["--group", "*.bias:frozen"],
        ["--group", "*:frozen", "--group", "*fc*:frozen=false"],
        ["--group", "c*:frozen"],
        ["--group", "*.bias:epochs=1"],
        ["--group", "*fc*:epochs=0.5,lr=0.1"],
        ["--group", "*.bias:weight_decay=0", "--group", "c*.weight:weight_decay=0.1"],
        ["--group", "*fc*:optimizer=adamw,lr=0.003"],
        ["--group", "c*.weight:optimizer=muon,lr=0.02,momentum=0.9"],
        ["--no-bias-decay"],
    ],
    "schedule": [
        ["--schedule", "cosine", "--warmup-steps", "3"],
        ["--schedule", "one-cycle"],
        ["--schedule", "linear", "--min-lr", "0.001"],
        ["--schedule", "step", "--schedule-step-size", "4", "--schedule-gamma", "0.5"],
        ["--warmup-steps", "5"],
    ],
    "clip": [["--clip-norm", "0.5"]],
    "smoothing": [["--label-smoothing", "0.1"]],
    "ema": [["--ema", "0.9"], ["--ema", "0.5"]],
    "augment": [
        ["--augment", "crop=2,flip"],
        ["--augment", "resized-crop"],
        ["--augment", "resized-crop=0.3:0.9,flip,mixup=0.3"],
        ["--augment", "flip=alternating,cutout=5"],
        ["--augment", "mixup=0.5,cutmix=1"],
        ["--augment", "crop=4,flip=alternating,cutmix=1,cutout=6"],
    ],
    "sampler": [
        ["--sampler", "balanced"],
        ["--sampler", "sharded"],
        ["--sampler", "sharded", "--shard-size", "3"],
        ["--sampler", "distributed"],
    ],
    "split": [
        ["--val-split", "0.2"],
        ["--val-split", "31", "--stratify", "off"],
        ["--val-split", "0.25", "--early-stop", "1"],
        ["--val-split", "3"],
    ],
    "normalize": [["--normalize", "half"], ["--normalize", "dataset"], ["--normalize", "0.4:0.2"]],
    "precision": [["--precision", "fp16"], ["--precision", "bf16"],
                  ["--precision", "fp16", "--loss-scale", "1e6", "--loss-scale-interval", "4"]],
    "ranks": [["--nprocs", "2"], ["--nprocs", "3"], ["--data-parallel", "2"]],
    "launcher": [["launch", "--nproc-per-node", "2"]],
    "zero": [
        ["--zero", "1"],
        ["--zero", "2"],
        ["--zero", "3"],
        ["--zero", "2", "--sync-every-pass"],
        ["--zero", "3", "--sync-every-pass"],
    ],
    "recompute": [["--checkpoint-activations", "2"], ["--checkpoint-activations", "4"],
                  ["--checkpoint-activations", "auto", "--activation-budget-mb", "0.2"]],
    "sync_batchnorm": [["--sync-batchnorm"]],
    "reproducible": [
        ["--reproducible", "--global-batch", "24", "--shard-size", "4"],
        ["--reproducible", "--global-batch", "24", "--shard-size", "3"],
        ["--reproducible", "--global-batch", "36", "--shard-size", "6"],
    ],
    "mean": [["--gradient-mean", "ranks"]],
    "buckets": [["--bucket-mb", "0.01", "--first-bucket-mb", "0.005"]],
    "overlap": [["--overlap", "off"]],
    "allreduce": [["--allreduce", "ring"]],
    "comm": [["--comm", "tcp"]],
    "wire": [["--wire-dtype", "bf16"], ["--wire-dtype", "fp16", "--precision", "fp16"]],
    "threads": [["--threads", "2"]],
    "loader": [["--loader-threads", "2"], ["--loader-threads", "3"]],
    "backend": [["--backend", "reference"], ["--conv", "onednn"], ["--conv", "direct"], ["--conv", "panels"],
                ["--gemm", "onednn"], ["--gemm", "strips"]],
    "weights": [["--weights", "begun"], ["--weights", "begun", "--reinit", "*fc*"]],
    "seed": [["--seed", "4294967299"]],
    "nan": [
        ["--on-nan", "skip", "--inject", "nan:rank=0,step=3"],
        ["--on-nan", "rollback", "--save-every-steps", "2", "--inject", "nan:rank=0,step=6"],
    ],
    "save": [["--save-every-steps", "4"], ["--keep-last", "1"], ["--keep-best", "2", "--save-every-steps", "3"]],
    "eval_every": [["--eval-every", "3"]],
    "tta": [["--tta", "flip"], ["--tta", "airbench"]],
    "check_replicas": [["--check-replicas", "2"]],
    "log": [["--log", "tensorboard"], ["--log-every", "2"], ["--trace", "trace.json"]],
    "name": [["--name", "a b", "--tags", "x,y"]],
    "device": [
        ["--device", "cuda", "--simulate-gpu", "h100"],
        ["--device", "cuda", "--simulate-gpu", "h100", "--simulate-seed", "7"],
        ["--device", "cuda", "--simulate-gpu", "h100", "--resident", "off"],
        ["--device", "cuda", "--simulate-gpu", "h100", "--cuda-graph", "off"],
    ],
}

# Kinds that must not change a bit of the weights: they say what is written, watched, or how work is divided in time.
NEUTRAL = ("save", "eval_every", "tta", "check_replicas", "log", "name", "loader", "overlap", "comm", "buckets")
# docs/models.md, "Batch normalization": these change no bit either, whatever the model.
LAYOUT = ("zero", "recompute")

BUILT_IN = ["convnet", "convnet-deep", "lenet5"]

# Ways to interrupt a training, and ways to resume it.
KILLS = ["exit", "kill", "term", "steps", "restart"]
RESUMES = ["same", "config", "another layout", "other ranks"]


# Drawn twice as often as others: they change what a step computes, or which samples it has.
FREQUENT = ("dataset", "batch", "optimizer", "groups", "ema", "augment", "sampler", "split", "precision", "ranks",
            "zero", "recompute", "sync_batchnorm", "reproducible")
FREQUENT_FEATURES = ("norm", "dropout")


def some(draw, kinds, frequent, count):
    """`count` kinds, each once."""
    bag = [kind for kind in sorted(kinds) for _ in range(2 if kind in frequent else 1)]
    chosen = []
    while len(chosen) < count:
        kind = draw.choice(bag)
        chosen += [] if kind in chosen else [kind]
    return chosen


def drawn(draw, has_gpu):
    """A draw of three options or more beside the defaults, one half with a model file, one half with a resume."""
    while True:
        parts = any_draw(draw, has_gpu)
        features = len(features_of(parts))
        if len(set(parts) - {"kill", "resume", "step"}) - features + (features > 0) >= 3:
            return parts


def any_draw(draw, has_gpu):
    parts = {}
    if draw.random() < 0.5:
        for feature in some(draw, models.FEATURES, FREQUENT_FEATURES, draw.randint(1, 6)):
            parts[f"model.{feature}"] = draw.choice(models.FEATURES[feature])
    elif draw.random() < 0.3:
        parts["model"] = ["--model", draw.choice(BUILT_IN)]
    for kind in some(draw, [kind for kind in OPTIONS if kind != "device"], FREQUENT, draw.randint(3, 9)):
        parts[kind] = draw.choice(OPTIONS[kind])
    if has_gpu and draw.random() < 0.06:
        parts["device"] = draw.choice(OPTIONS["device"])
        parts["length"] = ["--steps", str(draw.randint(3, 5))]
    if draw.random() < 0.5:
        parts |= {"kill": draw.choice(KILLS), "resume": draw.choice(RESUMES), "step": draw.randint(0, 20)}
    return allowed(parts, draw)


def allowed(parts, draw):
    """Without parts that the program documents as excluding each other: one of two goes, drawn."""
    def drop_one(*kinds):
        if all(kind in parts for kind in kinds):
            del parts[draw.choice(kinds)]
    drop_one("launcher", "ranks")
    drop_one("reproducible", "sampler")
    drop_one("reproducible", "batch")
    drop_one("nan", "save")
    drop_one("reproducible", "wire")
    drop_one("reproducible", "mean")
    if has_norm(parts) and "reproducible" in parts:
        parts["sync_batchnorm"] = ["--sync-batchnorm"]
    if "--data-parallel" in parts.get("ranks", []):
        for kind in ("zero", "sync_batchnorm", "reproducible", "launcher", "comm", "wire"):
            drop_one("ranks", kind)
    return parts


def has_file(parts):
    return any(kind.startswith("model.") for kind in parts)


def features_of(parts):
    return {kind[6:]: value for kind, value in parts.items() if kind.startswith("model.")}


def has_norm(parts):
    features = features_of(parts)
    return "norm" in features or features.get("stem") == "batch_norm"


def words_of(parts, model_file):
    """The words of `train` that the draw stands for."""
    values = dict(DEFAULTS)
    if "reproducible" in parts:
        values["batch"] = ["--batch-size", "12"]
    for kind in OPTIONS:
        if kind in parts and kind != "launcher":
            values[kind] = parts[kind]
    if "model" in parts:
        values["model"] = parts["model"]
    if has_file(parts):
        values["model"] = ["--model", model_file]
    if "wire" in values and "--precision" in values["wire"]:
        values.pop("precision", None)
    return [word for value in values.values() for word in value]
