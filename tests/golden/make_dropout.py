#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dropout.safetensors beside itself: words of Philox4x32-10 for the counters of kernels/ops/dropout.

An implementation of its own, checked against the known-answer vectors of Random123 (kat_vectors, philox4x32-10).
"""
import pathlib

import torch

from safetensors_file import save

KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def philox4x32_10(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 1 << 32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % (1 << 32), (k1 + 0xBB67AE85) % (1 << 32)
    return [c0, c1, c2, c3]


def words(seed, step, layer, samples, elements):
    key = [seed % (1 << 32), seed >> 32]
    return torch.tensor(
        [[philox4x32_10([i // 4, s % (1 << 32), step, (1 << 31) + layer], key)[i % 4] for i in range(elements)]
         for s in samples]
    )


if __name__ == "__main__":
    for counter, key, expected in KNOWN:
        assert philox4x32_10(counter, key) == expected
    samples = [0, 1, 7, 70_000, (1 << 32) - 1]
    tensors = {"numbers": torch.tensor(samples)}
    for name, seed, step, layer in (("zero", 0, 0, 0), ("any", 0x299F31D0A4093822, 1_234_567_890, 17)):
        tensors["words." + name] = words(seed, step, layer, samples, 37)
    save(pathlib.Path(__file__).parent / "dropout.safetensors", tensors)
