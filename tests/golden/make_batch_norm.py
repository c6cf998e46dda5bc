#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes batch_norm.safetensors beside itself: torch.nn.BatchNorm2d forward and backward, by PyTorch on the CPU in FP64.

The inputs are FP32. Matrices are NHWC, [positions, channels]. Cases: `relu` (weight, bias, residual and ReLU, as in a residual
block), `plain` (affine=False, other eps and momentum), `eval` (running statistics).
"""
import pathlib

import torch

from safetensors_file import save

HERE = pathlib.Path(__file__).parent
BATCH, CHANNELS, HEIGHT, WIDTH = 3, 5, 2, 4


def rows(tensor):
    return tensor.detach().permute(0, 2, 3, 1).reshape(-1, CHANNELS).contiguous()


def run(kept, name, given, training, affine, fused, **options):
    norm = torch.nn.BatchNorm2d(CHANNELS, affine=affine, dtype=torch.float64, **options)
    norm.train(training)
    with torch.no_grad():
        norm.running_mean.copy_(given["running_mean"])
        norm.running_var.copy_(given["running_var"])
        if affine:
            norm.weight.copy_(given["weight"])
            norm.bias.copy_(given["bias"])
    x = given["x"].double().requires_grad_()
    residual = given["residual"].double().requires_grad_()
    y = torch.relu(norm(x) + residual) if fused else norm(x)
    y.backward(given["dy"].double())
    kept[f"{name}.y"] = rows(y)
    kept[f"{name}.dx"] = rows(x.grad)
    if fused:
        kept[f"{name}.dresidual"] = rows(residual.grad)
    if affine:
        kept[f"{name}.dweight"] = norm.weight.grad
        kept[f"{name}.dbias"] = norm.bias.grad
    if training:
        kept[f"{name}.running_mean"] = norm.running_mean
        kept[f"{name}.running_var"] = norm.running_var


torch.manual_seed(0)
given = {name: torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH) for name in ("x", "residual", "dy")}
given["x"] = given["x"] * torch.tensor([1.0, 0.1, 3.0, 1.0, 2.0]).view(1, -1, 1, 1) + torch.arange(CHANNELS).view(1, -1, 1, 1)
given |= {name: torch.randn(CHANNELS) for name in ("weight", "bias", "running_mean")}
given["running_var"] = torch.rand(CHANNELS) + 0.5
kept = {name: rows(tensor) if tensor.dim() == 4 else tensor for name, tensor in given.items()}
run(kept, "relu", given, training=True, affine=True, fused=True)
run(kept, "plain", given, training=True, affine=False, fused=False, eps=1e-3, momentum=0.3)
run(kept, "eval", given, training=False, affine=True, fused=False)
save(HERE / "batch_norm.safetensors", kept)
