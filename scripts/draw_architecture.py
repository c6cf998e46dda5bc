#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws which folders include which, as the Mermaid flowchart of docs/architecture.md.

Usage: scripts/draw_architecture.py [--check] [FOLDER]

Reads the includes of production code in FOLDER (default: this checkout) and replaces the chart in docs/architecture.md
there. An arrow from A to B: A includes B. An arrow is left out where longer ways lead to the same folder. --check
changes nothing, and fails if the chart is not what the includes say.
"""
import pathlib
import re
import sys

PACKAGES = ("train", "nn", "comm", "data", "kernels")
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
CHART = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)


def folder_of(path):
    """Of train/core/ddp/buckets.h: train/core. A file of the package itself counts as the package."""
    return "/".join(pathlib.PurePosixPath(path).parts[:-1][:2])


def includes(root):
    """For each folder, those that its files include."""
    graph = {}
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            folder = folder_of(file.relative_to(root))
            targets = graph.setdefault(folder, set())
            for target in INCLUDE.findall(file.read_text()):
                if target.startswith(PACKAGES) and folder_of(target) != folder:
                    targets.add(folder_of(target))
                    graph.setdefault(folder_of(target), set())
    return graph


def without_shortcuts(graph):
    """Without the arrows to folders that another arrow leads to as well."""

    def reachable(start, seen):
        for target in graph.get(start, ()):
            if target not in seen:
                seen.add(target)
                reachable(target, seen)
        return seen

    return {
        folder: {t for t in targets if not any(t in reachable(other, set()) for other in targets - {t})}
        for folder, targets in graph.items()
    }


def chart(root):
    graph = without_shortcuts(includes(root))
    lines = ["```mermaid", "flowchart TD"]
    name = {folder: folder.replace("/", "_") for folder in graph}
    for package in PACKAGES:
        lines.append(f"  subgraph {package}_package [{package}]")
        for folder in sorted(f for f in graph if f.split("/")[0] == package):
            label = folder.split("/")[1] if "/" in folder else "process group" if folder == "comm" else folder
            lines.append(f"    {name[folder]}[{label}]")
        lines.append("  end")
    for folder in sorted(graph):
        lines += [f"  {name[folder]} --> {name[target]}" for target in sorted(graph[folder])]
    return "\n".join(lines) + "\n```\n"


def main(root, check):
    page = root / "docs/architecture.md"
    text = page.read_text()
    drawn, count = CHART.subn(lambda _: chart(root), text, count=1)
    if not count:
        sys.exit(f"{page} has no Mermaid chart to replace")
    if not check:
        page.write_text(drawn)
    elif drawn != text:
        sys.exit(f"{page} shows other includes than there are: run scripts/draw_architecture.py")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) > 1 or any(word.startswith("-") for word in words):
        sys.exit(__doc__)
    main(pathlib.Path(words[0]) if words else pathlib.Path(__file__).resolve().parent.parent, "--check" in sys.argv)
