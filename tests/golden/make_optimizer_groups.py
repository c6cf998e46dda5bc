#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes convnet_10steps_*.safetensors beside itself: those of make below, and adam_ema.

Ten steps of 32 of the images of convnet_step_seed0, by PyTorch on the CPU from seed 0: with parameter groups, other
constants of Adam, decoupled weight decay for SGD (strong decays, so that they show), Muon, label smoothing, and with
averaged weights (AveragedModel, decay 0.7).
"""
import json
import pathlib
import struct

import torch
import torch.optim.swa_utils

from safetensors_file import save

HERE = pathlib.Path(__file__).parent
KEPT = ("conv_layers.0.weight", "conv_layers.3.bias", "fc_layers.0.bias", "fc_layers.2.weight")
STEPS, BATCH = 10, 32
EMA_DECAY = 0.7


def read(name):
    raw = (HERE / f"{name}.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    types = {"U8": torch.uint8, "I64": torch.int64, "F32": torch.float32}
    tensors = {}
    for key, about in json.loads(raw[8 : 8 + size]).items():
        if key == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        data = bytearray(raw[8 + size + begin : 8 + size + end])
        tensors[key] = torch.frombuffer(data, dtype=types[about["dtype"]]).reshape(about["shape"])
    return tensors


def convnet():
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Module()
    model.conv_layers = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2))
    model.fc_layers = nn.Sequential(nn.Linear(1600, 256), nn.ReLU(), nn.Linear(256, 10))
    model.forward = lambda x: model.fc_layers(model.conv_layers(x).flatten(1))
    return model


def two_groups(model):
    decayed = [weight for name, weight in model.named_parameters() if not name.endswith("bias")]
    biases = [weight for name, weight in model.named_parameters() if name.endswith("bias")]
    return [{"params": decayed}, {"params": biases, "weight_decay": 0.0}]


class Sgdw(torch.optim.SGD):
    """As timm.optim.SGDW: the weights shrink before the step."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                weight.mul_(1 - group["lr"] * self.decay)
        super().step()

    def with_decay(self, decay):
        self.decay = decay
        return self


def three_groups(model):
    """--group 'conv_layers.*:lr=0.001,momentum=0.5' --group '*.bias:weight_decay=0,lr=0.05'"""
    groups = [{"params": []}, {"params": [], "lr": 1e-3, "momentum": 0.5}, {"params": [], "lr": 0.05, "weight_decay": 0.0},
              {"params": [], "lr": 0.05, "momentum": 0.5, "weight_decay": 0.0}]
    for name, weight in model.named_parameters():
        groups[name.startswith("conv_layers.") + 2 * name.endswith(".bias")]["params"].append(weight)
    return groups


def newton_schulz(matrix, coefficients, steps, eps):
    """As torch.optim._muon, in FP32: in BF16 small singular values would be noise."""
    a, b, c = coefficients
    x = matrix.T if matrix.size(0) > matrix.size(1) else matrix
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.size(0) > matrix.size(1) else x


class AirbenchMuon(torch.optim.Optimizer):
    """The rule of airbench94_muon.py in KellerJordan/cifar10-airbench."""

    def __init__(self, matrices, lr, momentum, steps):
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "steps": steps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for matrix in group["params"]:
                buffer = self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(matrix))
                buffer.mul_(group["momentum"]).add_(matrix.grad)
                update = matrix.grad.add(buffer, alpha=group["momentum"])
                matrix.mul_(len(matrix) ** 0.5 / matrix.norm())
                matrix.sub_(newton_schulz(update, (3.4445, -4.7750, 2.0315), group["steps"], 1e-7), alpha=group["lr"])


class MuonAndSgd:
    """An optimizer of the hidden weights as matrices [out, ...], and SGD for the head and biases."""

    def __init__(self, model, muon_of, **sgd):
        hidden = ("conv_layers.0.weight", "conv_layers.3.weight", "fc_layers.0.weight")
        weights = dict(model.named_parameters())
        self.hidden = [weights.pop(name) for name in hidden]
        self.matrices = [torch.nn.Parameter(weight.detach().flatten(1)) for weight in self.hidden]  # the same memory
        self.muon = muon_of(self.matrices)
        self.sgd = torch.optim.SGD(weights.values(), nesterov=True, **sgd)

    def zero_grad(self):
        self.sgd.zero_grad()
        for weight in self.hidden:
            weight.grad = None

    def step(self):
        for matrix, weight in zip(self.matrices, self.hidden):
            matrix.grad = weight.grad.flatten(1)
        self.muon.step()
        self.sgd.step()


# At rates some times larger than those of match_rms and normalize, PyTorch's own losses differ in FP32 and FP64.
def torch_muon(model, scale, lr):
    options = {"lr": lr, "momentum": 0.95, "weight_decay": 0.5}
    return MuonAndSgd(model, lambda matrices: torch.optim.Muon(matrices, adjust_lr_fn=scale, **options), **options)


def airbench_muon(model):
    return MuonAndSgd(model, lambda matrices: AirbenchMuon(matrices, 0.05, 0.6, 3), lr=0.02, momentum=0.6)


def train(model, optimizer, after_step=lambda: None, **loss_options):
    given = read("convnet_step_seed0")
    images = (given["images_u8"].reshape(-1, 1, 28, 28).float() / 255 - 0.5) / 0.5
    losses = []
    for step in range(STEPS):
        some = slice(step * BATCH, (step + 1) * BATCH)
        loss = torch.nn.functional.cross_entropy(model.forward(images[some]), given["labels"][some], **loss_options)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after_step()
        losses.append(loss.item())
    return {"losses": torch.tensor(losses, dtype=torch.float64)}


def make(name, optimizer_of, **loss_options):
    model = convnet()
    tensors = train(model, optimizer_of(model), **loss_options)
    tensors.update({key: dict(model.named_parameters())[key] for key in KEPT})
    save(HERE / f"convnet_10steps_{name}.safetensors", tensors)


def with_average():
    model = convnet()
    layers = torch.nn.ModuleDict({"conv_layers": model.conv_layers, "fc_layers": model.fc_layers})
    averaged = torch.optim.swa_utils.AveragedModel(layers, avg_fn=lambda avg, p, n: EMA_DECAY * avg + (1 - EMA_DECAY) * p)
    tensors = train(model, torch.optim.Adam(model.parameters(), lr=1e-3), lambda: averaged.update_parameters(layers))
    tensors.update({key: dict(averaged.module.named_parameters())[key] for key in KEPT})
    save(HERE / "convnet_10steps_adam_ema.safetensors", tensors)


if __name__ == "__main__":
    torch.set_num_threads(1)
    make("adamw_no_bias_decay", lambda model: torch.optim.AdamW(two_groups(model), lr=1e-3, weight_decay=20))
    make("sgd_no_bias_decay", lambda model: torch.optim.SGD(two_groups(model), lr=1e-2, momentum=0.9, weight_decay=0.5))
    make("sgd_groups", lambda model: torch.optim.SGD(three_groups(model), lr=1e-2, momentum=0.9, weight_decay=0.5))
    make("muon_bf16", lambda model: torch_muon(model, "original", 0.02))
    torch.optim._muon._zeropower_via_newtonschulz = newton_schulz
    make("muon", lambda model: torch_muon(model, "original", 0.02))
    make("muon_match_rms", lambda model: torch_muon(model, "match_rms_adamw", 0.002))
    make("muon_normalize", airbench_muon)
    make("adam_betas", lambda model: torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.7, 0.9), eps=1e-3))
    make("sgdw", lambda model: Sgdw(model.parameters(), lr=1e-2, momentum=0.9, nesterov=True).with_decay(5))
    make("adam_label_smoothing", lambda model: torch.optim.Adam(model.parameters(), lr=1e-3), label_smoothing=0.1)
    with_average()
