#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes images.safetensors beside itself: PNGs and JPEGs of every kind and what Pillow makes of them.

Tensors NAME.file, the bytes, and NAME.rgb: exif_transpose, then convert('RGB'). resize.HxW.of_HxW.{in,out}: Pillow's
BILINEAR. crop.SIZE.of_HxW.{in,out}: shorter side to SIZE, then the middle SIZE x SIZE, as torchvision's Resize and
CenterCrop.

Pillow 12 always resizes the columns first. Pillow 13 begins with the rows where that is less work, which changes some
bytes by 1. So both axes are asked for one by one here, which is the same in all versions.

With a folder as argument (tests/data/images/pillow_test.cpp): writes there other images, as NAME.file and PPM.
It then needs Pillow and NumPy only; exit code 77 without them.
"""
import io
import pathlib
import struct
import sys
import zlib

try:
    import numpy as np
    from PIL import Image, ImageOps, PngImagePlugin
except ImportError as missing:
    print(missing)
    sys.exit(77)


def picture(random, height, width, channels):
    """Large patches with some noise: JPEG then loses little, and differently in each block."""
    patches = random.integers(0, 256, (height // 9 + 1, width // 9 + 1, channels))
    noise = random.integers(-20, 21, (height, width, channels))
    return np.clip(patches.repeat(9, 0).repeat(9, 1)[:height, :width] + noise, 0, 255).astype(np.uint8)


def bytes_of(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def files(random, height, width):
    """(name, bytes) of every kind of image."""
    rgb = Image.fromarray(picture(random, height, width, 3))
    rgba = Image.fromarray(picture(random, height, width, 4), "RGBA")
    grey = Image.fromarray(picture(random, height, width, 1)[..., 0])
    for name, subsampling in ("444", 0), ("422", 1), ("420", 2):
        yield f"jpeg_{name}", bytes_of(rgb, "JPEG", subsampling=subsampling)
    yield "jpeg_progressive", bytes_of(rgb, "JPEG", progressive=True, quality=60)
    yield "jpeg_restarts", bytes_of(rgb, "JPEG", restart_marker_rows=1)
    yield "jpeg_rgb", bytes_of(rgb, "JPEG", keep_rgb=True)
    yield "jpeg_grey", bytes_of(grey, "JPEG")
    yield "jpeg_cmyk", bytes_of(Image.fromarray(picture(random, height, width, 4), "CMYK"), "JPEG", quality=95)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0110] = "a camera"
        exif[0x0112] = orientation
        yield f"jpeg_turned_{orientation}", bytes_of(rgb, "JPEG", exif=exif)
    yield "png_turned_6", bytes_of(rgb, "PNG", exif=exif_of(6))
    yield "png_rgb", bytes_of(rgb, "PNG")
    yield "png_rgba", bytes_of(rgba, "PNG")
    yield "png_grey", bytes_of(grey, "PNG")
    yield "png_grey_alpha", bytes_of(rgba.convert("LA"), "PNG")
    yield "png_palette", bytes_of(rgb.quantize(37), "PNG")
    yield "png_palette_2_bits", bytes_of(rgb.quantize(4), "PNG")
    yield "png_palette_transparent", bytes_of(rgb.quantize(16), "PNG", transparency=3)
    yield "png_bits", bytes_of(grey.convert("1"), "PNG")
    yield from turned_otherwise(rgb)


def turned_otherwise(rgb):
    """Orientations in other places than a SHORT of the Exif in eXIf or in the first segment of its kind."""
    exif, xmp = b"Exif\0\0" + tiff_of(6), xmp_of('tiff:Orientation="8"')
    yield "jpeg_turned_long_6", jpeg_with(rgb, b"Exif\0\0" + tiff_of(6, kind=4))
    yield "jpeg_turned_xmp_8", jpeg_with(rgb, XMP + xmp)
    yield "jpeg_turned_xmp_element_3", jpeg_with(rgb, XMP + xmp_of("/><tiff:Orientation>3</tiff:Orientation"))
    yield "jpeg_turned_xmp_and_exif_6", jpeg_with(rgb, XMP + xmp, exif)
    yield "jpeg_turned_xmp_and_other_exif_8", jpeg_with(rgb, b"Exif\0\0" + tiff_of(7, tag=0x0110), XMP + xmp)
    yield "jpeg_turned_two_xmps_3", jpeg_with(rgb, XMP + xmp, XMP + xmp_of('tiff:Orientation="3"'))
    yield "jpeg_turned_two_exifs_6", jpeg_with(rgb, exif, b"Exif\0\0" + tiff_of(3))
    yield "jpeg_turned_behind_segments_6", jpeg_with(rgb, *[b""] * 50, exif)
    yield "png_turned_long_6", bytes_of(rgb, "PNG", exif=tiff_of(6, kind=4))
    yield "png_turned_prefix_6", png_with(rgb, b"eXIf", exif)
    profile = "\nexif\n%8d\n" % len(exif) + exif.hex()[:72] + "\n" + exif.hex()[72:] + "\n"
    for name, write in (
        ("raw", lambda text: text.add_text("Raw profile type exif", profile)),
        ("raw_zipped", lambda text: text.add_text("Raw profile type exif", profile, zip=True)),
        ("raw_international", lambda text: text.add_itxt("Raw profile type exif", profile, "de", "Profil")),
        ("xmp", lambda text: text.add_itxt("XML:com.adobe.xmp", xmp.decode())),
        ("xmp_zipped", lambda text: text.add_itxt("XML:com.adobe.xmp", xmp.decode(), zip=True)),
        ("comment", lambda text: text.add_text("Comment", 'tiff:Orientation="8"')),
    ):
        text = PngImagePlugin.PngInfo()
        write(text)
        yield f"png_turned_{name}", bytes_of(rgb, "PNG", pnginfo=text)
    both = PngImagePlugin.PngInfo()
    both.add_itxt("XML:com.adobe.xmp", xmp.decode())
    both.add_text("Raw profile type exif", profile)
    yield "png_turned_xmp_and_raw", bytes_of(rgb, "PNG", pnginfo=both)
    yield "png_turned_raw_and_exif_6", bytes_of(rgb, "PNG", pnginfo=both, exif=tiff_of(3))


XMP = b"http://ns.adobe.com/xap/1.0/\0"


def xmp_of(attribute):
    return f"<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:Description {attribute}/></x:xmpmeta>".encode()


def tiff_of(orientation, kind=3, tag=0x0112):
    """A TIFF structure of one tag, of type SHORT (3) or LONG (4)."""
    value = struct.pack("<HH", orientation, 0) if kind == 3 else struct.pack("<I", orientation)
    return b"II*\0" + struct.pack("<IHHHI", 8, 1, tag, kind, 1) + value + bytes(4)


def jpeg_with(image, *segments):
    """A JPEG with APP1 segments before all others."""
    file = bytes_of(image, "JPEG")
    return file[:2] + b"".join(b"\xff\xe1" + struct.pack(">H", 2 + len(each)) + each for each in segments) + file[2:]


def png_with(image, kind, data):
    file, end = bytes_of(image, "PNG"), 8 + 12 + 13  # the signature and the header
    checksum = struct.pack(">I", zlib.crc32(kind + data))
    return file[:end] + struct.pack(">I", len(data)) + kind + data + checksum + file[end:]


def exif_of(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def decoded(file):
    return np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(file))).convert("RGB"))


def resized(image, height, width):
    """Columns first, in any version of Pillow."""
    narrow = image.resize((width, image.height), Image.Resampling.BILINEAR)
    result = narrow.resize((width, height), Image.Resampling.BILINEAR)
    at_once = np.array(image.resize((width, height), Image.Resampling.BILINEAR), np.int16)
    assert np.abs(at_once - np.array(result, np.int16)).max() <= 1
    return result


def shorter_side_and_middle(image, size):
    """The formulas of torchvision.transforms.functional's _compute_resized_output_size and center_crop."""
    short, long = sorted(image.size)
    other = int(size * long / short)
    width, height = (size, other) if image.width <= image.height else (other, size)
    image = resized(image, height, width)
    left, top = int(round((width - size) / 2)), int(round((height - size) / 2))
    return image.crop((left, top, left + size, top + size))


def cases(random, sizes, resizes, crops):
    """(name, file bytes or pixels)"""
    for height, width in sizes:
        for name, file in files(random, height, width):
            yield f"{name}_{height}x{width}.file", file
            yield f"{name}_{height}x{width}.rgb", decoded(file)
    for height, width, to_height, to_width in resizes:
        pixels = picture(random, height, width, 3)
        name = f"resize.{to_height}x{to_width}.of_{height}x{width}"
        yield f"{name}.in", pixels
        yield f"{name}.out", np.array(resized(Image.fromarray(pixels), to_height, to_width))
    for height, width, size in crops:
        pixels = picture(random, height, width, 3)
        yield f"crop.{size}.of_{height}x{width}.in", pixels
        yield f"crop.{size}.of_{height}x{width}.out", np.array(shorter_side_and_middle(Image.fromarray(pixels), size))


def integers(random, least, end):
    return random.integers(least, end, 2).tolist()


def write_folder(folder):
    random = np.random.default_rng(1)
    sizes = [(1, 1), (7, 9), (16, 16), (33, 50), (129, 64)]
    resizes = [(*integers(random, 1, 300), *integers(random, 1, 100)) for _ in range(60)]
    resizes += [(500, 333, 32, 32), (8, 8, 8, 3), (8, 8, 3, 8), (5, 5, 5, 5), (1, 1, 9, 9), (1023, 2, 31, 1)]
    crops = [(*integers(random, 20, 300), integers(random, 1, 70)[0]) for _ in range(40)]
    for name, value in cases(random, sizes, resizes, crops):
        if isinstance(value, bytes):
            (folder / name).write_bytes(value)
        else:
            Image.fromarray(value).save(folder / f"{name}.ppm")


def write_golden():
    import torch
    from safetensors_file import save

    random = np.random.default_rng(0)
    resizes = [(45, 61, 32, 32), (97, 130, 10, 11), (5, 7, 40, 23), (31, 33, 31, 8), (31, 33, 8, 33), (9, 9, 1, 1)]
    crops = [(45, 61, 32), (64, 31, 28), (50, 50, 33), (33, 80, 10)]
    tensors = {}
    for name, value in cases(random, [(23, 37)], resizes, crops):
        pixels = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
        tensors[name] = torch.from_numpy(pixels.copy())
    save(pathlib.Path(__file__).parent / "images.safetensors", tensors)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_folder(pathlib.Path(sys.argv[1]))
    else:
        write_golden()
