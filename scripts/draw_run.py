#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains twice on two ranks, once with two ranks killed, and draws both losses as an SVG picture.

Usage: scripts/draw_run.py [PROGRAM] [OUTPUT]

PROGRAM is gradring (default: build/release/gradring), OUTPUT the picture (default: docs/images/run.svg). Trains on MNIST
where GRADRING_DATA_DIR has it, else on digits. Fails if the two runs end with different weights.
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WIDTH, HEIGHT = 860, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 44, 44
WINDOW = 10  # steps of the moving average


def train(program, folder, options, kills):
    """Trains into `folder` on two ranks; `kills` are (rank, step), one in each attempt."""
    command = [program, "launch", "--nproc-per-node", "2", "--max-restarts", str(len(kills)), "train",
               "--run-dir", str(folder), "--progress", "none", "--resume", "auto", "--epochs", "1",
               "--save-every-steps", "50", "--reproducible", *options]
    for attempt, (rank, step) in enumerate(kills):
        command += ["--inject", f"kill:rank={rank},step={step},attempt={attempt}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def losses(folder):
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [row["loss"] for row in rows if row["event"] == "train"]


def averaged(values):
    return [sum(values[max(0, i - WINDOW + 1):i + 1]) / len(values[max(0, i - WINDOW + 1):i + 1]) for i in range(len(values))]


def weights(folder):
    return json.loads((folder / "summary.json").read_text())["parameters_sha256"]


def resumed_steps(folder):
    return [int(step) for step in re.findall(r"resumes after step (\d+)", (folder / "logs/rank_0.log").read_text())]


def draw(plain, killed, kills, resumed, digest, name):
    steps = len(plain)
    low, high = math.log(0.9 * min(plain)), math.log(1.2 * max(plain))

    def x(step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / steps

    def y(loss):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log(loss) - low) / (high - low)

    def line(values, style):
        points = " ".join(f"{x(i + 1):.1f},{y(value):.1f}" for i, value in enumerate(values))
        return f'<polyline points="{points}" fill="none" {style}/>'

    def text(at_x, at_y, words, anchor="start", style=""):
        return f'<text x="{at_x:.0f}" y="{at_y:.0f}" text-anchor="{anchor}" {style}>{words}</text>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
             '<!-- SPDX-License-Identifier: Apache-2.0; drawn by scripts/draw_run.py -->',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             text(LEFT, 24, f"Training loss on {name}, 2 ranks, mean of {WINDOW} steps", style='font-size="15"')]
    for step in range(0, steps + 1, 100):
        parts.append(text(x(step), HEIGHT - BOTTOM + 18, step, "middle"))
    for loss in [tick for tick in (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3) if low < math.log(tick) < high]:
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(loss):.1f}" y2="{y(loss):.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, y(loss) + 4, f"{loss:g}", "end"))
    parts.append(text(WIDTH - RIGHT, HEIGHT - 8, "step", "end"))
    for (rank, step), back in zip(kills, resumed):
        parts.append(f'<rect x="{x(back):.1f}" y="{TOP}" width="{x(step) - x(back):.1f}" height="{HEIGHT - TOP - BOTTOM}" '
                     'fill="#fbe3d6"/>')
        parts.append(f'<line x1="{x(step):.1f}" x2="{x(step):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#c0392b"/>')
        parts.append(text(x(step) + 5, TOP + 16, f"rank {rank} killed in step {step},", style='fill="#c0392b"'))
        parts.append(text(x(step) + 5, TOP + 32, f"resumed after step {back}", style='fill="#c0392b"'))
    parts.append(line(plain, 'stroke="#9ec5e8" stroke-width="6"'))
    parts.append(line(killed, 'stroke="#1f4e79" stroke-width="1.5"'))
    right, below = WIDTH - RIGHT - 8, TOP + 66
    for words, width, color, row in (("undisturbed", 6, "#9ec5e8", 0), ("two ranks killed", 1.5, "#1f4e79", 1)):
        parts.append(f'<line x1="{right - 30}" x2="{right}" y1="{below + 18 * row - 4}" y2="{below + 18 * row - 4}" '
                     f'stroke="{color}" stroke-width="{width}"/>')
        parts.append(text(right - 38, below + 18 * row, words, "end"))
    parts.append(text(right, below + 36, f"equal final weights, SHA-256 {digest[:12]}...", "end"))
    return "\n".join(parts + ["</svg>\n"])


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/release/gradring"
    output = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "docs/images/run.svg")
    data = pathlib.Path(os.environ.get("GRADRING_DATA_DIR", ""))
    mnist = bool(str(data)) and any(data.glob("mnist*"))
    options = ["--dataset", "mnist", "--data-dir", str(data)] if mnist else ["--dataset", "digits", "--batch-size", "8"]
    kills = [(1, 180), (0, 330)]
    with tempfile.TemporaryDirectory() as scratch:
        plain, killed = pathlib.Path(scratch, "plain"), pathlib.Path(scratch, "killed")
        train(program, plain, options, [])
        train(program, killed, options, kills)
        if weights(plain) != weights(killed):
            sys.exit("draw_run.py: the two runs end with different weights")
        picture = draw(averaged(losses(plain)), averaged(losses(killed)), kills, resumed_steps(killed), weights(plain),
                       "MNIST" if mnist else "digits")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(picture)


if __name__ == "__main__":
    main()
