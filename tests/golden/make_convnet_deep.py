#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes convnet_deep_step_seed0_{gray,rgb}.safetensors beside itself: one step of --model convnet-deep by PyTorch on the CPU.

Of every tensor with n elements stand in the file the norm and the elements 0, k, 2k, ..., where k = n // 256, or one more if
that is even: such a k would keep to a few columns of a matrix.
"""
import pathlib

import torch

from safetensors_file import save

KEPT = 256


def convnet_deep(height, width, channels, classes):
    layers = []
    for wider in (16, 48, 96, 192):
        if layers:
            layers.append(torch.nn.MaxPool2d(2))
        for _ in range(2):
            layers += [torch.nn.Conv2d(channels, wider, 3, padding=1), torch.nn.ReLU()]
            channels = wider
    model = torch.nn.Module()
    model.conv_layers = torch.nn.Sequential(*layers)
    features = channels * (height // 8) * (width // 8)
    model.fc_layers = torch.nn.Sequential(torch.nn.Linear(features, 256), torch.nn.ReLU(), torch.nn.Linear(256, classes))
    return model


def digest(name, tensor):
    flat = tensor.detach().flatten()
    return {name + ".norm": flat.double().norm().float().reshape(1), name + ".some": flat[:: len(flat) // KEPT | 1]}


def step(height, width, channels, classes, batch):
    torch.manual_seed(0)
    model = convnet_deep(height, width, channels, classes)
    tensors = {}
    for name, weight in model.named_parameters():
        tensors.update(digest("weight." + name, weight))
    images = torch.randint(0, 256, (batch, height, width, channels), dtype=torch.uint8)
    labels = torch.randint(0, classes, (batch,))
    x = (images.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
    logits = model.fc_layers(model.conv_layers(x).flatten(1))
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    for name, weight in model.named_parameters():
        tensors.update(digest("grad." + name, weight.grad))
    tensors.update({"images_u8": images, "labels": labels, "logits": logits.detach(), "loss": loss.detach().reshape(1)})
    return tensors


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    save(here / "convnet_deep_step_seed0_gray.safetensors", step(28, 28, 1, 10, 5))
    save(here / "convnet_deep_step_seed0_rgb.safetensors", step(32, 32, 3, 7, 3))
