#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws which folders include which, as the Mermaid flowchart of docs/architecture.md.

Usage: scripts/draw_architecture.py [--check]

Reads the includes of production code and replaces the chart in docs/architecture.md. An arrow from A to B: A includes
B. An arrow is left out where longer ways lead to the same folder. --check changes nothing, and fails if the chart is
not what the includes say.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
PACKAGES = ("train", "nn", "comm", "data", "kernels")
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
CHART = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)


def folder_of(path):
    """Of train/core/ddp/buckets.h: train/core. A file of the package itself counts as the package."""
    return "/".join(pathlib.PurePosixPath(path).parts[:-1][:2])


def includes():
    """For each folder, those that its files include."""
    graph = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            folder = folder_of(file.relative_to(ROOT))
            targets = graph.setdefault(folder, set())
            for target in INCLUDE.findall(file.read_text()):
                if target.startswith(PACKAGES) and folder_of(target) != folder:
                    targets.add(folder_of(target))
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


def chart():
    graph = without_shortcuts(includes())
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


def main():
    page = PAGE.read_text()
    drawn = CHART.sub(lambda _: chart(), page, count=1)
    if not CHART.search(page):
        sys.exit(f"{PAGE.relative_to(ROOT)} has no Mermaid chart to replace")
    if "--check" in sys.argv[1:]:
        if drawn != page:
            sys.exit(f"{PAGE.relative_to(ROOT)} shows other includes than there are: run scripts/draw_architecture.py")
    else:
        PAGE.write_text(drawn)


if __name__ == "__main__":
    if set(sys.argv[1:]) - {"--check"}:
        sys.exit(__doc__)
    main()
