#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes augmentation.safetensors beside itself: images that torchvision augments, with draws as docs/augmentation.md
defines them.

The draws are computed here once more, in floating point, from make_dropout.py's Philox: RandomResizedCrop.get_params is
torchvision's formula with given random numbers. torchvision.transforms.functional then changes PIL images. Needs
torchvision and Pillow.
"""
import math
import pathlib

import torch
import torchvision.transforms.functional as F
from PIL import Image

from make_dropout import philox4x32_10
from safetensors_file import save

SEED = (1 << 40) + 7
MEAN, STD = [0.4914, 0.4822, 0.4465], [0.247, 0.2435, 0.2616]
POSITION, CUTOUT, FIRST_FLIP, MIX, RESIZED_CROP = 0x40000000, 0x40000001, 0x40000002, 0x40000003, 0x40000010


def words(sample, epoch, purpose):
    return philox4x32_10([sample % (1 << 32), sample >> 32, epoch, purpose], [SEED % (1 << 32), SEED >> 32])


def below(word, count):
    return word * count >> 32


def resized_box(sample, epoch, scale, height, width):
    """RandomResizedCrop.get_params(img, scale, ratio=(3/4, 4/3))."""
    log_ratio = (math.log(3 / 4), math.log(4 / 3))
    for attempt in range(10):
        area, ratio, top, left = words(sample, epoch, RESIZED_CROP + attempt)
        target = height * width * (scale[0] + (scale[1] - scale[0]) * area / 2**32)
        aspect = math.exp(log_ratio[0] + (log_ratio[1] - log_ratio[0]) * ratio / 2**32)
        w, h = int(round(math.sqrt(target * aspect))), int(round(math.sqrt(target / aspect)))
        if 0 < w <= width and 0 < h <= height:
            return below(top, height - h + 1), below(left, width - w + 1), h, w
    raise ValueError("no attempt fits: choose another image size")


def augmented(case, image, sample, epoch):
    """The image as PIL, and the square that becomes 0 after Normalize."""
    height, width = image.height, image.width
    flips, down, right, _ = words(sample, epoch, POSITION)
    if "scale" in case:
        image = F.resized_crop(image, *resized_box(sample, epoch, case["scale"], height, width), [height, width])
    elif "crop" in case:
        pad = case["crop"]
        image = F.pad(image, pad, padding_mode="reflect")
        image = F.crop(image, below(down, 2 * pad + 1), below(right, 2 * pad + 1), height, width)
    if case["flip"] == "alternating":
        flips = words(sample, 0, FIRST_FLIP)[0] ^ (epoch % 2) << 31
    if case["flip"] and flips >= 1 << 31:
        image = F.hflip(image)
    side = case.get("cutout", 0)
    row, col, _, _ = words(sample, epoch, CUTOUT)
    top, left = below(row, height) - side // 2, below(col, width) - side // 2
    square = (max(top, 0), max(left, 0), min(top + side, height), min(left + side, width))
    return image, square


def mixed(case, results, epoch):
    """MixUp and CutMix of torchvision.transforms.v2 with alpha=1, but a lambda and a partner for each image."""
    _, height, width = results[0].shape
    images, partners, weights = [], [], []
    for sample, own in enumerate(results):
        partner, index, row, col = words(sample, epoch, MIX)
        partner, lam = below(partner, len(results)), ((index >> 20) + 0.5) / 4096
        other = results[partner]
        if case["mix"] == "mixup":
            image = other.mul(1.0 - lam).add(own.mul(lam))
        else:
            r = 0.5 * math.sqrt(1.0 - lam)
            x, y, half_w, half_h = below(col, width), below(row, height), int(r * width), int(r * height)
            x1, x2, y1, y2 = max(x - half_w, 0), min(x + half_w, width), max(y - half_h, 0), min(y + half_h, height)
            image = own.clone()
            image[:, y1:y2, x1:x2] = other[:, y1:y2, x1:x2]
            lam = float(1.0 - (x2 - x1) * (y2 - y1) / (width * height))
        images.append(image)
        partners.append(partner)
        weights.append(1.0 - lam)
    return images, torch.tensor(partners), torch.tensor(weights)


CASES = {
    "crop": {"shape": (9, 11, 3), "epoch": 3, "crop": 3, "flip": "random"},
    "even": {"shape": (8, 7, 1), "epoch": 2, "crop": 2, "flip": "alternating"},
    "odd": {"shape": (8, 7, 1), "epoch": 3, "crop": 2, "flip": "alternating"},
    "resized": {"shape": (16, 12, 3), "epoch": 1, "scale": (0.08, 1), "flip": "random"},
    "cutout": {"shape": (10, 10, 3), "epoch": 5, "crop": 1, "flip": "random", "cutout": 5},
    "mixup": {"shape": (6, 7, 3), "epoch": 2, "crop": 1, "flip": "random", "mix": "mixup"},
    "cutmix": {"shape": (10, 7, 3), "epoch": 4, "flip": "random", "mix": "cutmix"},
}

if __name__ == "__main__":
    generator = torch.Generator().manual_seed(1)
    tensors = {}
    for name, case in CASES.items():
        channels = case["shape"][2]
        images = torch.randint(0, 256, (12, *case["shape"]), dtype=torch.uint8, generator=generator)
        results = []
        for sample, pixels in enumerate(images):
            image = Image.fromarray(pixels.squeeze(2).numpy() if channels == 1 else pixels.numpy())
            image, (top, left, bottom, right) = augmented(case, image, sample, case["epoch"])
            result = F.normalize(F.to_tensor(image), MEAN[:channels], STD[:channels])
            if "cutout" in case:
                result = F.erase(result, top, left, bottom - top, right - left, torch.zeros(()))
            results.append(result)
        if "mix" in case:
            results, tensors[f"{name}.partners"], tensors[f"{name}.weights"] = mixed(case, results, case["epoch"])
        tensors[f"{name}.images"] = images
        tensors[f"{name}.augmented"] = torch.stack(results).permute(0, 2, 3, 1)
    save(pathlib.Path(__file__).parent / "augmentation.safetensors", tensors)
