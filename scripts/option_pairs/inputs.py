# SPDX-License-Identifier: Apache-2.0
"""Data sets of a few kilobytes, and readers of the arrays that the program writes. Needs no NumPy."""
import ast
import json
import random
import struct
import zlib

CLASSES = 5
HEIGHT, WIDTH = 20, 17
SAMPLES = {"train": 101, "test": 41}  # neither is a multiple of a batch or of a number of ranks
SHARES = (16, 9, 6, 4, 2)  # of the classes, which the balanced sampler and --stratify need to be unequal


def labels_of(count, draw):
    """The labels of `count` samples in a random order: every class has at least one sample."""
    labels = list(range(CLASSES)) + draw.choices(range(CLASSES), SHARES, k=count - CLASSES)
    draw.shuffle(labels)
    return labels


def pixels_of(label, height, width, channels, draw):
    """Noise with a bright row whose position is the class, so that a few steps lower the loss."""
    pixels = bytearray(draw.randrange(120) + 15 * label for _ in range(height * width * channels))
    bright = (2 + 3 * label) * height // HEIGHT
    row = width * channels
    for i in range(bright * row, (bright + 1) * row):
        pixels[i] += 75
    return bytes(pixels)


def write_npy(path, description, shape, content):
    """A file of NumPy's format 1.0: numpy/lib/format.py describes it."""
    header = f"{{'descr': '{description}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + content)


def read_npy(path):
    """The shape and the values of a file of float32."""
    content = path.read_bytes()
    size = struct.unpack_from("<H", content, 8)[0]
    header = ast.literal_eval(content[10:10 + size].decode())
    return header["shape"], [value for value, in struct.iter_unpack("<f", content[10 + size:])]


def read_safetensors(path):
    """{name: (type, shape, bytes)} of a .safetensors file."""
    content = path.read_bytes()
    size = struct.unpack_from("<Q", content)[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], content[8 + size + begin:8 + size + end])
    return tensors


def png(width, height, channels, pixels):
    """An 8-bit PNG: grey, RGB or RGBA (ISO/IEC 15948)."""
    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    row = width * channels
    rows = b"".join(b"\0" + pixels[y * row:(y + 1) * row] for y in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_arrays(folder, channels, draw):
    """Files for --dataset arrays, and the test images again: png/000.png and so on, and test.idx for onnx_peer.py."""
    (folder / "png").mkdir(parents=True)
    for split, count in SAMPLES.items():
        labels = labels_of(count, draw)
        images = [pixels_of(label, HEIGHT, WIDTH, channels, draw) for label in labels]
        shape = (count, HEIGHT, WIDTH) if channels == 1 else (count, HEIGHT, WIDTH, channels)
        write_npy(folder / f"{split}_images.npy", "|u1", shape, b"".join(images))
        write_npy(folder / f"{split}_labels.npy", "|u1", (count,), bytes(labels))
        if split == "test":
            sizes = struct.pack(">4B4I", 0, 0, 8, 4, count, HEIGHT, WIDTH, channels)
            (folder / "test.idx").write_bytes(sizes + b"".join(images))
            for i, pixels in enumerate(images):
                (folder / "png" / f"{i:03}.png").write_bytes(png(WIDTH, HEIGHT, channels, pixels))


def write_idx(folder, draw):
    """Files for --dataset idx, which have one channel."""
    folder.mkdir(parents=True)
    for split, name in (("train", "train"), ("test", "t10k")):
        labels = labels_of(SAMPLES[split], draw)
        images = b"".join(pixels_of(label, HEIGHT, WIDTH, 1, draw) for label in labels)
        header = struct.pack(">IIII", 0x803, len(labels), HEIGHT, WIDTH)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(header + images)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, len(labels)) + bytes(labels))


def write_folder(folder, draw, broken):
    """PNGs of many sizes for --dataset folder; `broken` training images cannot be read."""
    for split, count in SAMPLES.items():
        for i, label in enumerate(labels_of(count, draw)):
            height, width = draw.randint(17, 30), draw.randint(17, 30)
            path = folder / split / f"class{label}" / f"{i:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(width, height, 3, pixels_of(label, height, width, 3, draw)))
    for i in range(broken):
        (folder / "train" / f"class{i}" / f"broken{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n, and no more")


def write_all(folder):
    """Writes each data set, equal in each run of the script."""
    draw = random.Random(56)
    write_arrays(folder / "rgb", 3, draw)
    write_arrays(folder / "grey", 1, draw)
    write_arrays(folder / "rgba", 4, draw)
    write_idx(folder / "idx", draw)
    write_folder(folder / "images", draw, broken=0)
    write_folder(folder / "broken", draw, broken=2)
