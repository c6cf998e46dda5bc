#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs CUDA programs of other projects on a simulated GPU, and judges results and findings. Needs no GPU.

Usage: foreign_cuda.py [options] PROGRAMS

PROGRAMS is a folder of programs that were built before, by hand, as docs/cuda.md describes: REPOSITORY/NAME, with the
sizes of docs/results/foreign_cuda.md. Their sources are not part of this repository, but for those of cccl/, which call
CUDA's own libraries and are in scripts/foreign_cuda/cccl. Nothing is downloaded.

scripts/foreign_cuda/programs.txt lists the programs, a line each:
  name | program | arguments | sign of a right result
The sign is a regular expression that the output has, "!" and one that it must not have, or "-": exit status 0.

scripts/foreign_cuda/findings.txt has the judgement of each finding:
  name | kind | file:line | true or false | reason
Name and file:line are regular expressions. A finding that no line names is unjudged.

Prints a Markdown table and totals. Exit status: 0 if each program ran to its end with a right result or with findings
that were judged true, and no finding is unjudged or false.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

LISTS = pathlib.Path(__file__).resolve().parent / "foreign_cuda"
NOT_SIMULATED = re.compile(r"not simulated|cannot execute|not known here|cudaErrorNotSupported")
Program = collections.namedtuple("Program", "name program arguments sign")
Judgement = collections.namedtuple("Judgement", "name kind location verdict reason")
Outcome = collections.namedtuple("Outcome", "program status ran right findings seconds output")


def rows(path, kind):
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield kind(*(field.strip() for field in re.split(r"\s\|(?=\s)", line, maxsplit=len(kind._fields) - 1)))


def is_right(sign, status, output):
    if sign == "-":
        return status == 0
    if sign.startswith("!"):
        return status == 0 and not re.search(sign[1:], output)
    return bool(re.search(sign, output))


def location_of(finding):
    """layernorm_forward.cu:310, without folders; of a header of the toolkit, the line that calls it."""
    if not finding["line"]:
        return "host"
    is_of_toolkit = "/include/" in finding["file"] and finding["called_from"]
    return os.path.basename(finding["called_from"] if is_of_toolkit else f"{finding['file']}:{finding['line']}")


def run(program, options):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        executable = os.path.abspath(os.path.join(options.programs, program.program))
        data = os.path.join(os.path.dirname(executable), "data")  # that a program looks for where it runs
        if os.path.isdir(data):
            os.symlink(data, os.path.join(folder, "data"))
        command = [options.gradring, "cuda", "run", "--gpu", options.gpu, "--gpus", "2", "--seed", str(options.seed)]
        command += ["--time-limit", f"{options.time_limit}s", "--json", report]
        command += ["--", executable, *program.arguments.split()]
        # wait4 gives the CPU time of this program alone, also if several run at once.
        with open(os.path.join(folder, "output"), "w+", encoding="utf-8", errors="replace") as output:
            child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            # Without warnings of libraries that the program is linked with, which may be stand-ins.
            text = "".join(line for line in output if not line.startswith("gradring cuda: warning"))
        try:
            with open(report, encoding="utf-8") as file:
                findings = [finding for finding in json.load(file)["findings"]
                            if not finding["suppressed"] and not NOT_SIMULATED.search(finding["text"])]
        except (OSError, ValueError):
            findings = None
    status = child.returncode
    ran = findings is not None and status < 124 and not NOT_SIMULATED.search(text)
    right = is_right(program.sign, status, text)
    return Outcome(program, status, ran, right, findings or [], usage.ru_utime + usage.ru_stime, text)


def judged(outcome, judgements):
    """Pairs of a finding and its judgement (None: unjudged), each location once; empty for what did not run."""
    pairs = {}
    for finding in outcome.findings if outcome.ran else []:
        location = location_of(finding)
        for judgement in judgements:
            if (re.fullmatch(judgement.name, outcome.program.name) and re.fullmatch(judgement.kind, finding["kind"])
                    and re.fullmatch(judgement.location, location)):
                break
        else:
            judgement = None
        pairs.setdefault((finding["kind"], location), judgement)
    return pairs


def obstacle_of(outcome):
    """Why a program did not run to its end."""
    if outcome.status == 124:
        return "time limit"
    return "not simulated" if NOT_SIMULATED.search(outcome.output) else f"ended with {outcome.status}"


def row_of(outcome, pairs):
    findings = "<br>".join(f"{kind} {location}: " + (f"{found.verdict}, {found.reason}" if found else "**unjudged**")
                           for (kind, location), found in pairs.items())
    cells = [f"`{outcome.program.name} {outcome.program.arguments}`".replace(" `", "`"), "yes" if outcome.ran else "no",
             "yes" if outcome.ran and outcome.right else "no",
             (findings or "none") if outcome.ran else obstacle_of(outcome), f"{outcome.seconds:.1f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", metavar="PROGRAMS", help="folder of built programs")
    parser.add_argument("--gradring", default="gradring", metavar="FILE", help="the command (default: of PATH)")
    parser.add_argument("--gpu", default="h100", metavar="CARD", help="simulated card (default: h100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="order of warps and streams (default: 0)")
    parser.add_argument("--only", default="", metavar="REGEX", help="programs whose name it matches (default: all)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at once (default: 1)")
    parser.add_argument("--time-limit", type=int, default=120, metavar="N", help="seconds a program (default: 120)")
    parser.add_argument("--output-dir", metavar="FOLDER", help="keeps what each program printed")
    options = parser.parse_args()
    if os.path.exists(options.gradring):  # programs run in folders of their own
        options.gradring = os.path.abspath(options.gradring)

    programs = [program for program in rows(LISTS / "programs.txt", Program) if re.search(options.only, program.name)]
    judgements = list(rows(LISTS / "findings.txt", Judgement))
    totals = collections.defaultdict(lambda: collections.Counter())
    as_expected = True
    print("| program | ran | right | findings | CPU seconds |\n|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda program: run(program, options), programs):
            pairs = judged(outcome, judgements)
            print(row_of(outcome, pairs), flush=True)
            if options.output_dir:
                path = pathlib.Path(options.output_dir) / (outcome.program.name + ".txt")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(outcome.output, encoding="utf-8")
            verdicts = collections.Counter(found.verdict if found else "unjudged" for found in pairs.values())
            total = totals[outcome.program.name.split("/")[0]]
            total.update(tried=1, ran=int(outcome.ran), right=int(outcome.ran and outcome.right))
            total.update(quiet=int(outcome.ran and outcome.right and not pairs))
            total.update(verdicts)
            good = (outcome.ran and outcome.right) or verdicts["true"]
            as_expected &= bool(good) and not verdicts["false"] and not verdicts["unjudged"]
    print("\n| repository | tried | ran | right | without a finding | true | false | unjudged |")
    print("|---|---|---|---|---|---|---|---|")
    for repository, total in totals.items():
        columns = ("tried", "ran", "right", "quiet", "true", "false", "unjudged")
        print(f"| {repository} | " + " | ".join(str(total[column]) for column in columns) + " |")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{used.ru_utime + used.ru_stime:.0f} s of CPU.")
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
