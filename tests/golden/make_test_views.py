#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test_views.safetensors beside itself: test-time augmentation by PyTorch on the CPU, in FP32.

infer_basic, infer_mirror and infer_mirror_translate do what the functions of those names do in airbench94_muon.py,
github.com/KellerJordan/cifar10-airbench f1c599c.
"""
import pathlib

import torch
from torch.nn import functional

from safetensors_file import save


def infer_basic(inputs, net):
    return net(inputs)


def infer_mirror(inputs, net):
    return 0.5 * net(inputs) + 0.5 * net(inputs.flip(-1))


def infer_mirror_translate(inputs, net):
    height, width = inputs.shape[-2:]
    padded = functional.pad(inputs, (1, 1, 1, 1), "reflect")
    shifted = [padded[..., :height, :width], padded[..., 2 : height + 2, 2 : width + 2]]
    return 0.5 * infer_mirror(inputs, net) + 0.5 * torch.stack([infer_mirror(x, net) for x in shifted]).mean(0)


if __name__ == "__main__":
    torch.manual_seed(0)
    pixels = torch.randint(0, 256, (7, 3, 5, 4), dtype=torch.uint8)
    images = (pixels / 255.0 - 0.5) / 0.5
    labels = torch.randint(0, 10, (7,))
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 5 * 4, 10))
    tensors = {"images_u8": pixels.permute(0, 2, 3, 1).contiguous(), "labels": labels}
    tensors |= {"weight": net[1].weight, "bias": net[1].bias}
    for name, infer in {"none": infer_basic, "flip": infer_mirror, "airbench": infer_mirror_translate}.items():
        logits = infer(images, net)
        tensors |= {f"{name}.logits": logits, f"{name}.loss": functional.cross_entropy(logits, labels).reshape(1)}
        tensors |= {f"{name}.correct": (logits.argmax(1) == labels).sum().reshape(1)}
        in_top = (logits.topk(5).indices == labels[:, None]).any(1)
        tensors |= {f"{name}.correct_in_top": in_top.sum().reshape(1)}
    save(pathlib.Path(__file__).parent / "test_views.safetensors", tensors)
