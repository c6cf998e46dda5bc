#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes grouped_conv2d.safetensors beside itself: convolutions in groups by PyTorch on the CPU, in NHWC and OHWI.

Cases depthwise (8 groups of 8 channels, 3 x 3, stride 2, padding 1) and grouped (8 to 12 channels in 4 groups, 3 x 2, padding 1).
"""
import pathlib

import torch

from safetensors_file import save


def case(name, conv, image):
    x = image.clone().requires_grad_()
    y = conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    dy = torch.randn(y.shape)
    y.backward(dy)
    ohwi = {"w": conv.weight, "dw": conv.weight.grad}
    tensors = {"x": x, "y": y, "dy": dy, "dx": x.grad} | {key: value.permute(0, 2, 3, 1) for key, value in ohwi.items()}
    return {f"{name}.{key}": value for key, value in tensors.items()}


if __name__ == "__main__":
    torch.manual_seed(0)
    image = torch.randn(2, 7, 6, 8)
    tensors = case("depthwise", torch.nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8, bias=False), image)
    tensors |= case("grouped", torch.nn.Conv2d(8, 12, (3, 2), padding=1, groups=4, bias=False), image)
    save(pathlib.Path(__file__).parent / "grouped_conv2d.safetensors", tensors)
