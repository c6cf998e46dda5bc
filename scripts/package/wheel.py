#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a Python wheel of an installed gradring: the programs go where pip puts scripts, without any Python around them.

Usage: wheel.py --version V --readme FILE --output DIR INSTALLED

INSTALLED is the folder that `cmake --install` made. The wheel's platform tag names the oldest glibc that the files run
with, as PEP 600 defines it. The same input and SOURCE_DATE_EPOCH give the same bytes. Prints the wheel's path.
"""

import argparse
import base64
import hashlib
import os
import platform
import re
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

# pip installs no symbolic links, and a copy would double the wheel. pipx links to scripts from elsewhere, hence readlink.
GRADRUN = b"""#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/gradring" launch "$@"
"""

METADATA = """Metadata-Version: 2.1
Name: gradring
Version: {version}
Summary: Data-parallel trainer for ConvNets: one native program, no Python at run time
License: Apache-2.0
Classifier: Environment :: Console
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """Wheel-Version: 1.0
Generator: gradring scripts/package/wheel.py
Root-Is-Purelib: false
Tag: {tag}
"""


def needed_glibc(files):
    """The newest version of glibc's symbols that the files use, as (2, 34)."""
    found = set()
    for file in files:
        text = subprocess.run(["readelf", "--version-info", "--wide", file], check=True, capture_output=True, text=True)
        found |= {tuple(map(int, v)) for v in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", text.stdout)}
    if not found:
        sys.exit(f"wheel.py: no version of glibc in {', '.join(map(str, files))}: expected dynamic ELF files")
    return max(found)


def contents(installed, version):
    """The files of the wheel besides its metadata: name, bytes, mode."""
    programs = f"gradring-{version}.data/scripts"
    yield f"{programs}/gradring", (installed / "bin/gradring").read_bytes(), 0o755
    yield f"{programs}/gradrun", GRADRUN, 0o755
    module = installed / "lib/gradring/libgradring_cuda.so"
    if module.exists():
        yield f"gradring-{version}.data/data/lib/gradring/{module.name}", module.read_bytes(), 0o644
    for notice in sorted((installed / "share/doc/gradring/licenses").iterdir()):
        yield f"gradring-{version}.dist-info/licenses/{notice.name}", notice.read_bytes(), 0o644


def record_of(files, own_name):
    """PEP 376's RECORD: name, hash and size of every file."""
    lines = []
    for name, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join(lines) + f"{own_name},,\n"


def write_wheel(path, files, epoch):
    date = time.gmtime(max(epoch, 315532800))[:6]  # zip knows no time before 1980
    with zipfile.ZipFile(path, "w") as archive:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, date)
            entry.create_system = 3  # Unix, on which the mode means something
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("installed", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--readme", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or sys.exit("wheel.py: set SOURCE_DATE_EPOCH, the date of the files")

    files = list(contents(args.installed, args.version))
    elf = [args.installed / "bin/gradring", *args.installed.glob("lib/gradring/*.so")]
    major, minor = needed_glibc(elf)
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    info = f"gradring-{args.version}.dist-info"
    metadata = METADATA.format(version=args.version, readme=args.readme.read_text())
    files.append((f"{info}/METADATA", metadata.encode(), 0o644))
    files.append((f"{info}/WHEEL", WHEEL.format(tag=tag).encode(), 0o644))
    files.append((f"{info}/RECORD", record_of(files, f"{info}/RECORD").encode(), 0o644))
    wheel = args.output / f"gradring-{args.version}-{tag}.whl"
    write_wheel(wheel, files, int(epoch))
    print(wheel)


main()
