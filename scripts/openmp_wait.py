#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how OpenMP's threads wait for each other in a training on the CPU: spinning, as libgomp does by default, and not.

Usage: scripts/openmp_wait.py [--pairs N] [--busy N] [--setting NAME=VALUE]... PROGRAM [TRAIN-OPTION...]

Trains `digits` with one rank, in turns with each setting of the environment: GOMP_SPINCOUNT=300000 (libgomp's default),
and those of --setting (default: OMP_WAIT_POLICY=passive, the program's default). --busy N: while N other programs compute.
Prints for each setting the median of its samples per second divided by those of the first in the same round, and an
interval that holds the median with a probability of at least 95 % (order statistics, no distribution assumed).
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SPINNING = "GOMP_SPINCOUNT=300000"
TRAIN = "train --dataset digits --epochs 0 --steps 300 --progress none --run-dir run".split()
VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME", "OMP_NUM_THREADS")


def samples_per_second(program, options, setting):
    name, value = setting.split("=", 1)
    environment = {key: text for key, text in os.environ.items() if key not in VARIABLES} | {name: value}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, *TRAIN, *options], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        return json.loads((pathlib.Path(folder) / "run" / "summary.json").read_text())["samples_per_second"]


@contextlib.contextmanager
def other_programs(count):
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def median_interval(values):
    """The order statistics around the median whose probability to hold it is at least 95 %; all values if too few."""
    ordered, count, outside, skipped = sorted(values), len(values), 2 * 0.5 ** len(values), 0
    while skipped + 1 < count / 2:
        outside += 2 * math.comb(count, skipped + 1) * 0.5**count
        if outside > 0.05:
            break
        skipped += 1
    return ordered[skipped], ordered[count - 1 - skipped]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15, help="number of rounds (default 15)")
    parser.add_argument("--busy", type=int, default=0, help="number of other programs that compute (default 0)")
    parser.add_argument("--setting", action="append", help="variable to compare (default OMP_WAIT_POLICY=passive)")
    parser.add_argument("program", help="the gradring to measure")
    args, options = parser.parse_known_args()
    program = os.path.abspath(args.program)
    settings = [SPINNING, *(args.setting or ["OMP_WAIT_POLICY=passive"])]
    rates = {setting: [] for setting in settings}
    with other_programs(args.busy):
        for _ in range(args.pairs):
            for setting in settings:
                rates[setting].append(samples_per_second(program, options, setting))
            print("  ".join(f"{setting} {rates[setting][-1]:.0f}/s" for setting in settings), flush=True)
    for setting in settings:
        ratios = [rate / first for rate, first in zip(rates[setting], rates[SPINNING])]
        low, high = median_interval(ratios)
        print(f"{setting:<28} {statistics.median(rates[setting]):7.0f} samples/s, {statistics.median(ratios):.3f} times "
              f"({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
