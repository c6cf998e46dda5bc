#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what metrics, TensorBoard, a trace and `gradring top` cost a training, in CPU seconds of all its processes.

Usage: scripts/report_cost.py [--rounds N] PROGRAM [OLDER-PROGRAM]

Each round trains 1,000 steps of digits on two ranks, in turns: by OLDER-PROGRAM, with defaults; by PROGRAM with
defaults; with evaluations, which TensorBoard's histograms follow; and with these, --log tensorboard, a trace of 50
steps and `top`. Prints medians of the ratios within the rounds, with the least and the greatest. For an idle machine.
"""

import argparse
import os
import pathlib
import statistics
import tempfile
import time

TRAIN = "train --dataset digits --epochs 0 --steps 1000 --nprocs 2 --batch-size 32 --threads 1 --progress none".split()
EVALUATE = ["--eval-every", "200"]
ALL = EVALUATE + ["--log", "tensorboard", "--trace", "trace.json", "--trace-steps", "100:149"]


def start(program, words):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(program, [program, *words])
    return child


def cpu_seconds(child):
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        raise SystemExit(f"report_cost.py: a process ended with status {status}: see the output above")
    return usage.ru_utime + usage.ru_stime


def training(program, more=(), watched=False):
    """CPU seconds of one training in a fresh folder, and of `top` if it is watched."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        ranks = start(program, [*TRAIN, "--run-dir", "run", *more])
        if not watched:
            return cpu_seconds(ranks)
        while not pathlib.Path("run/metrics.jsonl").exists():
            time.sleep(0.01)
        top = start(program, ["top", "run"])
        return cpu_seconds(ranks) + cpu_seconds(top)


def show(name, ratios):
    print(f"{name:<44} {statistics.median(ratios):.3f}  ({min(ratios):.3f} to {max(ratios):.3f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="number of rounds (default 10)")
    parser.add_argument("program", help="the gradring to measure")
    parser.add_argument("older", nargs="?", help="an older gradring to compare the defaults with")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    older = os.path.abspath(args.older) if args.older else None
    defaults, everything = [], []
    for _ in range(args.rounds):
        before = training(older) if older else None
        plain = training(program)
        evaluated = training(program, EVALUATE)
        everything.append(training(program, ALL, watched=True) / evaluated)
        if before:
            defaults.append(plain / before)
        print(f"CPU seconds with defaults: {plain:.2f}", flush=True)
    if defaults:
        show("defaults, against the older program", defaults)
    show("TensorBoard, trace and top, against none", everything)


if __name__ == "__main__":
    main()
