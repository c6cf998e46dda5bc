#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays the counters of a training step on a GPU, by Nsight Compute, beside those of the simulated GPU.

Usage: compare_counters.py --ncu
       compare_counters.py NCU_CSV STEP_JSON

--ncu prints the profiler's part of the command that makes NCU_CSV, on a machine with a GPU:
  $(scripts/compare_counters.py --ncu) --log-file step.csv gradring bench step --device cuda --warmup 2 --steps 1 ...
STEP_JSON is of the same step without a GPU, by a program with the same kernels:
  gradring bench step --device cuda --simulate-gpu h100 --counters -J step.json ...

Prints a Markdown table: for each kernel of both its microseconds on the GPU, our bound, and each counter on the GPU, as
a multiple of the simulated one: "=" where they are equal. Launches of a kernel with the same grid are paired in their
order, beginning from the last.
"""
import argparse
import collections
import csv
import json
import re

# Heading of a column: the metric of Nsight Compute, and that of the JSON file if its name differs.
COUNTERS = {
    "warp instructions": "smsp__inst_executed.sum",
    "load requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "load sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "store sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "registers": "launch__registers_per_thread",
    "resident warps": "sm__maximum_warps_per_active_cycle_pct",
}
DURATION = "gpu__time_duration.sum"
NANOSECONDS = {"ns": 1, "us": 1e3, "usecond": 1e3, "nsecond": 1, "ms": 1e6, "msecond": 1e6}


def ncu_command():
    metrics = ",".join([*COUNTERS.values(), DURATION])
    return f"ncu --clock-control none --csv --page raw --metrics {metrics}"


def name_of(kernel):
    """bias_grad_rows_kernel, of "void gradring::kernels::bias::<unnamed>::bias_grad_rows_kernel<T>(...)"."""
    return re.match(r"[\w:~ ]*", kernel.replace("<unnamed>::", ""))[0].split("::")[-1].split(" ")[-1]


def measured_launches(path):
    """By kernel and grid: what Nsight Compute counted, in the order of launches."""
    with open(path, encoding="utf-8") as file:
        table = list(csv.reader(line for line in file if line.startswith('"')))
    launches = collections.defaultdict(list)
    for row in table[2:]:
        launch = dict(zip(table[0], row))
        counters = {metric: float(launch[metric].replace(",", "")) for metric in COUNTERS.values()}
        unit = dict(zip(table[0], table[1]))[DURATION]
        counters[DURATION] = float(launch[DURATION].replace(",", "")) * NANOSECONDS[unit] / 1e3
        grid = tuple(int(extent) for extent in re.findall(r"\d+", launch["Grid Size"]))
        launches[name_of(launch["Kernel Name"]), grid].append(counters)
    return launches


def simulated_launches(path):
    with open(path, encoding="utf-8") as file:
        nodes = json.load(file)["nodes"]
    launches = collections.defaultdict(list)
    for launch in (node["launch"] for node in nodes if "launch" in node):
        launches[name_of(launch["kernel"]), tuple(launch["grid"])].append(launch)
    return launches


def cell(measured, simulated):
    if measured == simulated:
        return "="
    return f"{measured / simulated:.2f}x" if simulated else f"{measured:.0f} for 0"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("Usage: "))
    parser.add_argument("--ncu", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if options.ncu and not options.files:
        print(ncu_command())
        return
    if options.ncu or len(options.files) != 2:
        parser.error("name the CSV file of Nsight Compute and the JSON file of bench step")
    measured, simulated = measured_launches(options.files[0]), simulated_launches(options.files[1])
    print("| kernel | blocks | us | bound | " + " | ".join(COUNTERS) + " |")
    print("|---|" + "---|" * (3 + len(COUNTERS)))
    for key, launches in simulated.items():
        name, grid = key
        found = measured.get(key, [])[-len(launches):]
        for on_gpu, launch in zip(found, launches):
            counters = [cell(on_gpu[metric], launch["metrics"][metric]) for metric in COUNTERS.values()]
            print(f"| `{name}` | {grid[0] * grid[1] * grid[2]} | {on_gpu[DURATION]:.1f} | "
                  f"{launch['bound']['microseconds']:.2f} | " + " | ".join(counters) + " |")
        if len(found) < len(launches):
            print(f"| `{name}` | {grid[0] * grid[1] * grid[2]} | not on the GPU |" + " |" * (1 + len(COUNTERS)))


main()
