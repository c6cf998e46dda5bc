# SPDX-License-Identifier: Apache-2.0
"""Model files made of features, each of which a failing draw can lose on its own."""

# The values of each feature. A model without features is a convolution, ReLU, pooling, a second convolution and a head.
FEATURES = {
    "stem": ["whitening", "batch_norm"],
    "norm": ["plain", "momentum = 0", "momentum = 1", "momentum = 0.3, eps = 0.001", "momentum = 0.4, eps = 1e-12"],
    "activation": ["gelu", "silu"],
    "pool": ["overlapping average", "overlapping max", "none"],
    "depthwise": ["yes"],
    "residual": ["add", "block", "two blocks"],
    "head": ["flatten", "hidden", "one by one"],
    "dropout": ["before the head", "after the first layer", "both"],
    "scale": ["yes"],
    "bias": ["none"],
    "init": ["dirac", "unit_variance"],
    "frozen": ["first convolution", "weights of normalization", "a bias"],
}

BLOCK = """
[blocks.basic]
parameters = ["out"]
layers = [
  { conv2d = "conv1", out = "out", kernel = 3, padding = 1 },
  { relu = "relu1" },
  { conv2d = "conv2", out = "out", kernel = 3, padding = 1 },
  { add = "add", inputs = ["conv2", "input"] },
  { relu = "relu2" },
]
"""

POOLS = {
    None: '{ max_pool2d = "pool", kernel = 2 }',
    "overlapping average": '{ avg_pool2d = "pool", kernel = 3, stride = 2, padding = 1 }',
    "overlapping max": '{ max_pool2d = "pool", kernel = 3, stride = 2, padding = 1 }',
    "none": None,
}


class Layers:
    """The lines of `layers`, in order."""

    def __init__(self, features):
        self.features = features
        self.lines = []

    def add(self, kind, name, keys=""):
        self.lines.append(f'{{ {kind} = "{name}"{", " + keys if keys else ""} }}')

    def normalize(self, name):
        """A batch normalization, if the model has any."""
        norm = self.features.get("norm")
        if norm is None:
            return
        keys = [] if norm == "plain" else [norm]
        if self.features.get("frozen") == "weights of normalization":
            keys.append('frozen = ["weight"]')
        self.add("batch_norm2d", name, ", ".join(keys))

    def activate(self, name):
        self.add(self.features.get("activation", "relu"), name)


def first_convolution(layers):
    """conv1 with what `bias`, `init` and `frozen` make of it."""
    features = layers.features
    keys = ["out = 6", "kernel = 3", "padding = 1"]
    if features.get("bias") == "none":
        keys.append("bias = false")
    if "init" in features:
        keys.append(f'init = "{features["init"]}"')
    if features.get("frozen") == "first convolution":
        keys.append('frozen = ["weight"]' if features.get("bias") == "none" else 'frozen = ["weight", "bias"]')
    elif features.get("frozen") == "a bias" and features.get("bias") != "none":
        keys.append('frozen = ["bias"]')
    layers.add("conv2d", "conv1", ", ".join(keys))


def residual(layers):
    kind = layers.features.get("residual")
    if kind == "add":
        before = layers.lines[-1].split('"')[1]
        layers.add("conv2d", "conv2", 'out = "in", kernel = 3, padding = 1')
        layers.normalize("norm2")
        after = layers.lines[-1].split('"')[1]
        layers.add("add", "sum", f'inputs = ["{after}", "{before}"]')
    elif kind:
        repeat = ", repeat = 2" if kind == "two blocks" else ""
        layers.add("block", "layer1", f'of = "basic", out = "in"{repeat}')


def head(layers):
    """What follows the last activation, up to the logits."""
    features = layers.features
    kind = features.get("head")
    dropout = features.get("dropout") in ("before the head", "both")
    if kind not in ("flatten", "hidden"):
        layers.add("global_avg_pool2d", "gap")
    if kind == "one by one":
        layers.add("conv2d", "mix", "out = 12, kernel = 1")
        layers.normalize("norm4")
        layers.activate("act4")
    layers.add("flatten", "flatten")
    if kind == "hidden":
        layers.add("linear", "hidden", "out = 20")
        layers.activate("act4")
    if dropout:
        layers.add("dropout", "drop", "p = 0.3")
    layers.add("linear", "fc", 'out = "classes"')


def text_of(features):
    """The model file of {feature: value}."""
    layers = Layers(features)
    if features.get("stem") == "whitening":
        layers.add("conv2d", "whiten", 'out = "2 * 2 * 2 * in", kernel = 2, init = "whitening", frozen = ["weight"]')
        layers.activate("act0")
    elif features.get("stem") == "batch_norm":
        layers.add("batch_norm2d", "norm0")
    first_convolution(layers)
    layers.normalize("norm1")
    layers.activate("act1")
    if features.get("dropout") in ("after the first layer", "both"):
        layers.add("dropout", "drop1", "p = 0.2")
    pool = POOLS[features.get("pool")]
    if pool:
        layers.lines.append(pool)
    if features.get("depthwise"):
        layers.add("conv2d", "depthwise", 'out = "in", kernel = 3, padding = 1, groups = "in"')
        layers.normalize("norm_d")
    residual(layers)
    layers.add("conv2d", "conv3", "out = 8, kernel = 3, stride = 2")
    layers.normalize("norm3")
    layers.activate("act3")
    if features.get("scale"):
        layers.add("scale", "scale", "factor = 3, divisor = 2")
    head(layers)
    text = "layers = [\n" + "".join(f"  {line},\n" for line in layers.lines) + "]\n"
    return text + BLOCK if "block" in features.get("residual", "") else text
