#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a folder of images to try `gradring train --dataset folder` with (docs/own_images.md).

Shapes in random colors on noise, as PNG files of 40 to 96 pixels a side: FOLDER/train/CLASS/N.png and FOLDER/test/...,
for the classes circle, cross, ring, square and triangle. The same seed makes the same files.
"""
import argparse
import pathlib
import random
import struct
import sys
import zlib


SHAPES = {  # whether a point of the square from -1 to 1 is in the shape
    "circle": lambda x, y: x * x + y * y < 1,
    "cross": lambda x, y: min(abs(x), abs(y)) < 0.3 and max(abs(x), abs(y)) < 1,
    "ring": lambda x, y: 0.5 < x * x + y * y < 1,
    "square": lambda x, y: max(abs(x), abs(y)) < 0.8,
    "triangle": lambda x, y: abs(x) < (y + 1) / 2 and y < 1,
}


def chunk(kind, content):
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def png(width, height, rows):
    """An 8-bit RGB image of the rows' bytes, as the PNG specification (ISO/IEC 15948) has it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def image(contains, draw):
    """One image with the shape of `contains` at a random place, in a random size and color."""
    width, height = draw.randint(40, 96), draw.randint(40, 96)
    radius = draw.uniform(0.25, 0.42) * min(width, height)
    x0, y0 = (draw.uniform(radius, side - radius) for side in (width, height))
    shape, ground = ([draw.randint(*between) for _ in range(3)] for between in ((130, 220), (30, 120)))
    rows = []
    for y in range(height):
        row = bytearray()
        for x in range(width):
            color = shape if contains((x - x0) / radius, (y - y0) / radius) else ground
            noise = draw.getrandbits(5)
            row += bytes(part + noise for part in color)
        rows.append(bytes(row))
    return png(width, height, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="a new folder")
    parser.add_argument("--train", type=int, default=200, metavar="N", help="training images a class (default: 200)")
    parser.add_argument("--test", type=int, default=40, metavar="N", help="test images a class (default: 40)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the images (default: 0)")
    options = parser.parse_args()
    if options.folder.exists():
        sys.exit(f"{parser.prog}: {options.folder} exists: give another folder")
    draw = random.Random(options.seed)
    for split, count in (("train", options.train), ("test", options.test)):
        for name, contains in SHAPES.items():
            folder = options.folder / split / name
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{number}.png").write_bytes(image(contains, draw))
    print(f"{options.folder}: {len(SHAPES)} classes, each with {options.train} training and {options.test} test images")


if __name__ == "__main__":
    main()
