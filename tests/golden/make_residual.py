#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes residual_step_seed0.safetensors beside itself: one step of a model with shortcuts by PyTorch on the CPU.

The model is residual_model() of tests/nn/support/program_rig.cpp: outputs with two and three readers, a shortcut from the
images, one from before a ReLU, and an output that is added to itself.
"""
import pathlib

import torch

from safetensors_file import save


class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pre = torch.nn.Conv2d(2, 2, 3, padding=1)
        self.conv0 = torch.nn.Conv2d(2, 4, 3, padding=1)
        self.conv1 = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.down = torch.nn.Conv2d(4, 6, 1, stride=2)
        self.conv3 = torch.nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.conv4 = torch.nn.Conv2d(6, 6, 3, padding=1)
        self.fc = torch.nn.Linear(6 * 4 * 4, 3)

    def forward(self, x):
        relu = torch.nn.functional.relu
        x = relu(self.conv0(self.pre(x) + x))
        x = relu(self.conv2(relu(self.conv1(x))) + x)
        sum4 = self.conv4(relu(self.conv3(x))) + self.down(x)
        x = relu(sum4) + sum4
        return self.fc((x + x).flatten(1))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Residual()
    images = torch.rand(5, 2, 8, 8) * 2 - 1
    labels = torch.randint(0, 3, (5,))
    logits = model(images)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    tensors = {"grad." + name: weight.grad for name, weight in model.named_parameters()}
    tensors |= {"images": images.permute(0, 2, 3, 1).contiguous(), "labels": labels, "logits": logits.detach()}
    save(pathlib.Path(__file__).parent / "residual_step_seed0.safetensors", tensors | {"loss": loss.detach().reshape(1)})
