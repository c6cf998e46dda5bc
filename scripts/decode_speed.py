#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images that one core decodes, resizes and crops a second: gradring's image folders beside torchvision's ImageFolder.

Usage: scripts/decode_speed.py GRADRING [--images N] [--repeat N]

Makes JPEGs of photographs' sizes in a temporary folder. Both decode each file once and cut 224 x 224 pixels out of it:
gradring by the start of a training that fills an empty image cache (without the start that finds it), torchvision by
ImageFolder with Resize(224) and CenterCrop(224), without a DataLoader. Time is that of the processor, of one thread, so
that other programs disturb it little. Prints the median of the repetitions. Needs torchvision, Pillow and NumPy.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
from PIL import Image
from torchvision import datasets, transforms

SIZE = 224


def write_photos(folder, count, height, width):
    """Smooth random images: about the bytes a pixel of photographs at quality 90."""
    random = np.random.default_rng(0)
    for i in range(count):
        small = Image.fromarray(random.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8))
        path = folder / f"class_{i % 2}" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        small.resize((width, height), Image.Resampling.BICUBIC).save(path, quality=90)


def seconds_of_gradring(program, folder, cache):
    """Processor time of a start that makes no step."""
    before = os.times()
    subprocess.run([program, "train", "--dataset", "folder", "--data-dir", folder, "--image-size", str(SIZE),
                    "--device", "cpu", "--threads", "1", "--batch-size", "1", "--dry-run"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=os.environ | {"GRADRING_CACHE_DIR": cache})
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def seconds_of_torchvision(folder):
    crop = transforms.Compose([transforms.Resize(SIZE), transforms.CenterCrop(SIZE), transforms.PILToTensor()])
    images = datasets.ImageFolder(folder, crop)
    before = time.process_time()
    for i in range(len(images)):
        images[i]
    return time.process_time() - before


def measure(program, count, height, width):
    with tempfile.TemporaryDirectory() as folder:
        train = pathlib.Path(folder, "photos/train")
        write_photos(train, count, height, width)
        write_photos(train.parent / "test", 2, 8, 8)
        photos, cache = str(train.parent), f"{folder}/cache"
        first = seconds_of_gradring(program, photos, cache)
        return first - seconds_of_gradring(program, photos, cache), seconds_of_torchvision(str(train))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gradring")
    parser.add_argument("--images", type=int, default=2000, help="of 224 x 224 pixels; fewer of larger ones")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{'JPEGs':>11}  {'gradring':>9}  {'torchvision':>11}   images a second of one core")
    for height, width in (SIZE, SIZE), (375, 500), (1200, 1600):
        count = max(10, options.images * SIZE * SIZE // (height * width))
        times = [measure(options.gradring, count, height, width) for _ in range(options.repeat)]
        ours, theirs = (count / statistics.median(column) for column in zip(*times))
        print(f"{height:>5}x{width:<5}  {ours:9.0f}  {theirs:11.0f}")


if __name__ == "__main__":
    main()
