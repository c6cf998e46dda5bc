# SPDX-License-Identifier: Apache-2.0
"""PyTorch's GradScaler on a CPU, for a comparison step by step.

Usage: grad_scaler_peer.py INITIAL GROWTH BACKOFF INTERVAL FLAGS

FLAGS has a letter a step: 1 where the gradients overflow, 0 where they do not. Prints a line a step: the scale behind it, in
hexadecimal, and whether the optimizer was run. Ends with 77 where this PyTorch has no scaler for the CPU (before 2.3).
"""

import sys

import torch


def main() -> None:
    initial, growth, backoff = (float.fromhex(word) for word in sys.argv[1:4])
    try:
        scaler = torch.amp.GradScaler(
            "cpu", init_scale=initial, growth_factor=growth, backoff_factor=backoff, growth_interval=int(sys.argv[4]))
    except (AttributeError, TypeError):
        print(f"PyTorch {torch.__version__} has no GradScaler for the CPU")
        sys.exit(77)
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    for flag in sys.argv[5]:
        scaler.scale(weight.sum())
        before = weight.detach().clone()
        weight.grad = torch.full((3,), float("inf") if flag == "1" else scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
        print(float(scaler.get_scale()).hex(), int(not torch.equal(weight, before)))


if __name__ == "__main__":
    main()
