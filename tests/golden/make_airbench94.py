#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes airbench94_step_seed0.safetensors beside itself: one step and one evaluation of airbench94 by PyTorch on the CPU, in
FP32, and the whitening filters of its images.

The network and its initial weights are those of CifarNet in airbench94_muon.py, github.com/KellerJordan/cifar10-airbench
f1c599c, before init_whiten. Of weights and gradients the file keeps norms and some elements.
"""
import pathlib

import torch

from safetensors_file import save


class Conv(torch.nn.Conv2d):
    def __init__(self, channels_in, channels_out):
        super().__init__(channels_in, channels_out, 3, padding="same", bias=False)

    def reset_parameters(self):
        super().reset_parameters()
        torch.nn.init.dirac_(self.weight.data[: self.weight.size(1)])


class Group(torch.nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv1, self.norm1 = Conv(channels_in, channels_out), torch.nn.BatchNorm2d(channels_out, 1e-12, 0.4)
        self.conv2, self.norm2 = Conv(channels_out, channels_out), torch.nn.BatchNorm2d(channels_out, 1e-12, 0.4)

    def forward(self, x):
        gelu = torch.nn.functional.gelu
        x = gelu(self.norm1(torch.nn.functional.max_pool2d(self.conv1(x), 2)))
        return gelu(self.norm2(self.conv2(x)))


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.whiten = torch.nn.Conv2d(3, 24, 2)
        self.layers = torch.nn.Sequential(
            torch.nn.GELU(), Group(24, 64), Group(64, 256), Group(256, 256), torch.nn.MaxPool2d(3))
        self.head = torch.nn.Linear(256, 10, bias=False)
        self.head.weight.data *= 1 / self.head.weight.data.std()

    def forward(self, x):
        x = self.layers(self.whiten(x)).flatten(1)
        return self.head(x) / x.size(-1)


def freeze(model):
    """What airbench94 does not train."""
    for name, weight in model.named_parameters():
        weight.requires_grad = not (name == "whiten.weight" or ("norm" in name and name.endswith("weight")))


def whitening_filters(images, kernel, eps=5e-4):
    """init_whiten: of the patches' second moments, not of their covariance."""
    patches = torch.nn.functional.unfold(images, kernel).transpose(1, 2).flatten(0, 1)
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches), UPLO="U")
    filters = vectors.T / torch.sqrt(values + eps).unsqueeze(1)
    return torch.cat((filters, -filters)).reshape(-1, images.size(1), kernel, kernel)


def digest(name, tensor):
    flat = tensor.detach().flatten()
    return {name + ".norm": flat.double().norm().float().reshape(1), name + ".some": flat[:: len(flat) // 256 | 1]}


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Network()
    freeze(model)
    smooth = torch.nn.functional.interpolate(torch.rand(6, 3, 12, 12), 32, mode="bilinear")
    pixels = ((0.8 * smooth + 0.2 * torch.rand(6, 3, 32, 32)) * 255).to(torch.uint8)
    images = (pixels / 255.0 - 0.5) / 0.5
    labels = torch.randint(0, 10, (6,))
    logits = model(images)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    tensors = {"images_u8": pixels.permute(0, 2, 3, 1).contiguous(), "labels": labels, "logits": logits.detach()}
    for name, weight in model.named_parameters():
        tensors |= digest("weight." + name, weight)
        if weight.requires_grad:
            tensors |= digest("grad." + name, weight.grad)
    model.eval()
    tensors |= {"loss": loss.detach().reshape(1), "evaluation": model(images).detach()}
    tensors |= {"whitening": whitening_filters(images.double(), 2).float()}
    save(pathlib.Path(__file__).parent / "airbench94_step_seed0.safetensors", tensors)
