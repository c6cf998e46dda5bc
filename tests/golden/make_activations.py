#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes activations.safetensors beside itself: GELU and SiLU by PyTorch on the CPU, with gradients."""
import pathlib

import torch

from safetensors_file import save


def case(name, function, at):
    x = at.clone().requires_grad_()
    y = function(x)
    y.backward(torch.ones_like(y))
    return {f"{name}.y": y, f"{name}.dx": x.grad}


if __name__ == "__main__":
    # In FP64, so that the values are those of the functions, and everything from the tails to the middle.
    x = torch.cat([torch.linspace(-12, 12, 193), torch.tensor([-100.0, -40.0, 1e-20, 1e-3, 40.0, 100.0])]).double()
    tensors = {"x": x} | case("gelu", torch.nn.GELU(), x) | case("silu", torch.nn.SiLU(), x)
    save(pathlib.Path(__file__).parent / "activations.safetensors", tensors)
