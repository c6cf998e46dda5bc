#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dropout_step_seed0.safetensors beside itself: one step of a network with dropout by PyTorch on the CPU, and the
evaluation after it.

The model is dropout_model() of tests/nn/support/program_rig.cpp. PyTorch multiplies by masks from the words of
make_dropout.py: seed 11, step 5, and the samples 40, 43, 46, ... of the step's batch.
"""
import pathlib

import torch

from make_dropout import words
from safetensors_file import save

SEED, STEP, SAMPLES = 11, 5, range(40, 55, 3)


def dropped(x, p, layer):
    n, channels, height, width = x.shape
    kept = words(SEED, STEP, layer, SAMPLES, x[0].numel()) >= p * 2**32  # counted in the order NHWC
    return x * kept.reshape(n, height, width, channels).permute(0, 3, 1, 2) / (1 - p)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv0 = torch.nn.Conv2d(2, 3, 3, padding=1)
        self.conv1 = torch.nn.Conv2d(3, 3, 3, padding=1)
        self.fc = torch.nn.Linear(3 * 7 * 7, 3)

    def forward(self, x):
        drop = dropped if self.training else lambda x, p, layer: x
        x = torch.relu(self.conv0(x))
        x = torch.relu(self.conv1(drop(x, 0.25, 2)) + x)
        return self.fc(drop(x, 0.5, 7).flatten(1))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Network()
    images = torch.rand(5, 2, 7, 7) * 2 - 1
    labels = torch.randint(0, 3, (5,))
    logits = model(images)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    tensors = {"grad." + name: weight.grad for name, weight in model.named_parameters()}
    tensors |= {"images": images.permute(0, 2, 3, 1).contiguous(), "labels": labels, "logits": logits.detach()}
    model.eval()
    tensors |= {"evaluation": model(images).detach(), "loss": loss.detach().reshape(1)}
    save(pathlib.Path(__file__).parent / "dropout_step_seed0.safetensors", tensors)
