#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the tables of the lessons (kernels/ops/*/README.md) with what a simulated GPU counts.

A table that stands directly below a code block of `gradring bench kernels ... --counters` commands is theirs. The names of
its columns say what they hold: those of COLUMNS below, or a class of instructions ("integer") that some launch has, in
percent of all. The columns case, variant and kernel say which launch a row is of; a table without rows gets all launches.
"""
import argparse
import difflib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTED = re.compile(r"```\n((?:gradring bench kernels [^`\n]* --counters\n)+)```\n\n((?:\|.*\n)+)")
KEYS = ("case", "variant", "kernel")


def resident_warps(launch):
    of_grid, of_card = launch["resident_warps_of_grid"], launch["resident_warps"]
    return f"{of_grid}, {'grid' if of_grid < of_card else launch['occupancy_limiter']}"


def sectors(launch, operation):
    """Those of a request on average, and the least."""
    if not launch[f"l1tex__t_requests_pipe_lsu_mem_global_op_{operation}.sum"]:
        return ""
    touched = launch[f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{operation}.ratio"]
    return f"{touched:.1f}/{launch[f'ideal_sectors_per_request_global_{operation}']:.1f}"


def wavefronts(launch):
    least = launch["ideal_wavefronts_shared"]
    return f"{launch['l1tex__data_pipe_lsu_wavefronts_mem_shared.sum'] / least:.2f}x" if least else ""


def bound_by(launch):
    limit, busiest = launch["bound"]["limit"], launch["bound"]["busiest"]
    return f"issue: {busiest}" if limit == "issue" and busiest != "issue" else limit


# docs/counters.md says what each means.
COLUMNS = {
    "case": lambda launch: launch["case"],
    "variant": lambda launch: launch["variant"],
    "kernel": lambda launch: "`" + launch["kernel"].split("<")[0] + "`",
    "blocks": lambda launch: str(launch["grid"][0] * launch["grid"][1] * launch["grid"][2]),
    "warp instructions": lambda launch: str(launch["warp_instructions"]),
    "lanes": lambda launch: f"{launch['smsp__thread_inst_executed_pred_on_per_inst_executed.ratio']:.1f}",
    "load sectors": lambda launch: sectors(launch, "ld"),
    "store sectors": lambda launch: sectors(launch, "st"),
    "sectors loaded": lambda launch: str(launch["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]),
    "shared wavefronts": lambda launch: str(launch["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"] or ""),
    "MB read": lambda launch: f"{launch['distinct_bytes_read'] / 1e6:.3f}",
    "MB written": lambda launch: f"{launch['distinct_bytes_written'] / 1e6:.3f}",
    "wavefronts": wavefronts,
    "barriers": lambda launch: str(launch["barriers"] or ""),
    "tensor MFLOP": lambda launch: f"{launch['tensor_flops'] / 1e6:.1f}" if launch["tensor_flops"] else "",
    "registers": lambda launch: str(launch["launch__registers_per_thread"]),
    "resident warps": resident_warps,
    "bound, us": lambda launch: f"{launch['bound']['microseconds']:.2f}",
    "bound by": bound_by,
}


def cell(launch, column):
    if column in COLUMNS:
        return COLUMNS[column](launch)
    return f"{100 * launch['warp_instructions_by_class'].get(column, 0) / launch['warp_instructions']:.0f} %"


def counted_launches(program, command):
    """What a command counts, in the order in which it was launched."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        words = [program, *shlex.split(command)[1:], "-J", str(result)]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"{shlex.join(words)} failed with exit code {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        cases = json.loads(result.read_text())["cases"]
    return [launch | launch["metrics"] | {"case": case["name"], "variant": variant["name"]}
            for case in cases for variant in case["variants"] for launch in variant["counters"]]


def filled(table, launches):
    """The table with the numbers of its rows' launches; several launches of one name are taken in their order."""
    rows = [[word.strip() for word in line.strip("|\n").split("|")] for line in table.splitlines()]
    columns = rows[0]
    known = [*COLUMNS, *sorted({name for launch in launches for name in launch["warp_instructions_by_class"]})]
    for column in columns:
        if column not in known:
            sys.exit(f"unknown column '{column}'; there are {', '.join(known)}")
    keys = [column for column in columns if column in KEYS]
    left = [([cell(launch, key) for key in keys], launch) for launch in launches]
    wanted = [[row[columns.index(key)] for key in keys] for row in rows[2:]] or [key for key, _ in left]
    chosen = []
    for key in wanted:
        found = next((each for each in left if each[0] == key), None)
        if found is None:
            sys.exit(f"no launch was counted of {key}; left are {[key for key, _ in left]}")
        left.remove(found)
        chosen.append([cell(found[1], column) for column in columns])
    header, *body = ["| " + " | ".join(cells) + " |\n" for cells in [columns, *chosen]]
    return header + "|" + "---|" * len(columns) + "\n" + "".join(body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/gradring"), help="gradring (default %(default)s)")
    parser.add_argument("--check", action="store_true", help="compare, and change nothing; exit status 1 if a table differs")
    parser.add_argument("lessons", nargs="*", type=pathlib.Path, help="default: all kernels/ops/*/README.md that have tables")
    given = parser.parse_args()
    tables, differ = 0, 0

    def refill(match):
        nonlocal tables
        tables += 1
        launches = [launch for command in match[1].splitlines() for launch in counted_launches(given.program, command)]
        return match[0].replace(match[2], filled(match[2], launches))

    for path in given.lessons or sorted(ROOT.glob("kernels/ops/*/README.md")):
        old = path.read_text()
        if len(COUNTED.findall(old)) != old.splitlines().count("## Counted"):
            sys.exit(f"{path}: each '## Counted' needs one block of commands with --counters, a blank line, and a table")
        new = COUNTED.sub(refill, old)
        if new == old:
            continue
        differ += 1
        if not given.check:
            path.write_text(new)
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(path), "counted", n=0))
    print(f"{tables} tables in lessons, {differ} lessons {'differ' if given.check else 'changed'}")
    sys.exit(given.check and differ > 0)


if __name__ == "__main__":
    main()
