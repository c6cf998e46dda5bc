#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pooling.safetensors beside itself: max and average pooling by PyTorch on the CPU, in NHWC, with gradients.

Cases max (window 3, stride 2, padding 1), average (the same), inside (the same, count_include_pad=False), and global.
"""
import pathlib

import torch

from safetensors_file import save


def case(name, pool, image):
    x = image.clone().requires_grad_()
    y = pool(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    # Multiples of 1/64: sums over overlapping windows are exact.
    dy = torch.randint(-64, 65, y.shape) / 64
    y.backward(dy)
    return {f"{name}.x": x, f"{name}.y": y, f"{name}.dy": dy, f"{name}.dx": x.grad}


if __name__ == "__main__":
    torch.manual_seed(0)
    image = torch.randn(2, 7, 6, 5)
    tensors = case("max", torch.nn.MaxPool2d(3, stride=2, padding=1), image)
    tensors |= case("average", torch.nn.AvgPool2d(3, stride=2, padding=1), image)
    tensors |= case("inside", torch.nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), image)
    tensors |= case("global", torch.nn.AdaptiveAvgPool2d(1), image)
    save(pathlib.Path(__file__).parent / "pooling.safetensors", tensors)
