#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes batch_norm_step_seed0.safetensors beside itself: one step of a residual network by PyTorch on the CPU, and the
evaluation after it.

The model is batch_norm_model() of tests/nn/support/program_rig.cpp.
"""
import pathlib

import torch

from safetensors_file import save


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        conv = lambda a, b, stride: torch.nn.Conv2d(a, b, 3, stride=stride, padding=1, bias=False)
        self.conv0, self.bn0 = conv(2, 5, 1), torch.nn.BatchNorm2d(5)
        self.conv1, self.bn1 = conv(5, 8, 2), torch.nn.BatchNorm2d(8, eps=1e-3, momentum=0.4)
        self.conv2, self.bn2 = conv(8, 8, 1), torch.nn.BatchNorm2d(8)
        self.down, self.bn3 = conv(5, 8, 2), torch.nn.BatchNorm2d(8)
        self.conv3, self.bn4 = conv(8, 8, 1), torch.nn.BatchNorm2d(8)
        self.fc = torch.nn.Linear(8 * 4 * 4, 3)

    def forward(self, x):
        relu = torch.nn.functional.relu
        x = relu(self.bn0(self.conv0(x)))
        y = relu(self.bn1(self.conv1(x)))
        x = relu(self.bn2(self.conv2(y)) + self.bn3(self.down(x)))
        return self.fc((self.bn4(self.conv3(x)) + x).flatten(1))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Network()
    images = torch.rand(5, 2, 8, 8) * 2 - 1
    labels = torch.randint(0, 3, (5,))
    logits = model(images)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    tensors = {"grad." + name: weight.grad for name, weight in model.named_parameters()}
    tensors |= {"buffer." + name: value for name, value in model.named_buffers() if "num_batches" not in name}
    tensors |= {"images": images.permute(0, 2, 3, 1).contiguous(), "labels": labels, "logits": logits.detach()}
    model.eval()
    tensors |= {"evaluation": model(images).detach(), "loss": loss.detach().reshape(1)}
    save(pathlib.Path(__file__).parent / "batch_norm_step_seed0.safetensors", tensors)
