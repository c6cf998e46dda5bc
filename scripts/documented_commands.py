#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the commands that the Markdown files show, or runs them.

documented_commands.py check PROGRAM [--repository DIR] [--build DIR]
    Of every command in a code block or in `inline code`: the command of gradring exists, and its options; the script exists,
    and its options; the preset exists; the filter of ctest matches a test of the build.

documented_commands.py run [--slow] PROGRAM [FILE...]
    Runs the code blocks that call gradring, each file's in a temporary folder of its own. Without --slow, those that take
    seconds. What is not run is listed with the reason.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRADRING = re.compile(r"^(?:\./|\S*build/(?:\w+/)?)?(gradring|gradrun|gradring_old) +(?=[a-z$-])(?![a-z-]+:)")
SHELL = re.compile(r"^((cd|cp|export|for|grep|kill|mkdir|rm|sleep|tail|timeout|done)\b|\w+=)")
OTHERS = re.compile(r"^(sudo |apt-get |cmake |ctest |git |pip |scripts/|\S+/scripts/|tensorboard |nsys |torchrun |mpirun |srun |ssh )")
# A command of gradring anywhere in a line: behind `timeout 5`, in the quotes of `ssh HOST "..."`.
WITHIN = re.compile(r"(?<![\w/-])(?:\S*/)?(gradring|gradrun|gradring_old) +((?=[a-z-])(?![a-z-]+:)[^;|>&]*)")

# Commands that have commands.
GROUPS = [("bench",), ("ckpt",), ("cuda",), ("data",), ("data", "cache"), ("model",), ("runs",), ("trace",)]

# Commands that are not run, and why. The first that matches counts.
NOT_RUN = [
    (r"\.\.\.|<|\bFOLDER\b|\bDIR\b|=D$| D( |$)|\bHOST\b|\[-", "has a placeholder"),
    (r"\bdata (fetch|verify|info)\b|--dataset (mnist|cifar10)|--preset (mnist|fashion|cifar10)-", "needs a data set"),
    (r"--device cuda(?!.*--simulate-gpu)", "needs a GPU"),
    (r"\bcuda (run|nvcc)\b", "needs nvcc, and a program that it compiled"),
    (r"bench kernels .*--simulate-gpu", "is run by scripts/simulated_gpu.sh and count_lessons.py"),
    (r" /tmp/", "writes outside of its folder"),
    (r"--ncu\b|^nsys ", "needs Nsight"),
    (r"\bbuild/spirals\b", "is run by tests/train/install"),
    (r"\bruns rm\b|\btop\b", "needs a terminal"),
    (r"completions \w+ > ", "writes into the home directory"),
    (r"^pids=|^kill -STOP", "freezes every run of this user"),
]
# Minutes, not seconds.
SLOW = re.compile(r"\bbench\b(?!.*--list)|\$what|--simulate-gpu|--epochs (20|50)|\bhelp --man\b.*\bslow\b|sleep (10|15)|gradring launch \$elastic")
# Exit codes other than 0 that a document means.
EXIT_CODES = {
    ("docs/faults.md", r"--inject kill:rank=1,step=50$"): {137},
    ("docs/checkpoints.md", r"^timeout "): {0, 124},
    ("docs/checkpoints.md", r"ckpt diff runs/a runs/b *(#|$)"): {0, 1},
    ("docs/benchmarks.md", r"bench diff"): {0, 1},  # a machine that is busy with something else is slower
    ("docs/troubleshooting.md", r"--inject stop"): {162},
}
# What stands for the reader's own runs and files.
BEFORE = {
    "docs/reports.md": "gradring train --run-dir runs/second --epochs 1",
    "docs/troubleshooting.md": "gradring train --run-dir runs/a --epochs 1",
    "docs/own_images.md": f"{ROOT}/scripts/make_images.py shapes --train 60 --test 10",
    "docs/runs.md": "gradring train --run-dir runs/NAME --epochs 1; gradring train --run-dir runs/OTHER --epochs 1",
}


@dataclasses.dataclass
class Command:
    file: str
    line: int
    text: str
    block: int  # the line at which its code block begins; 0 for inline code


def commands_of(path, name):
    """Command lines of a Markdown file: whole blocks if they hold commands, `$ ` lines of transcripts, inline code."""
    found, block, joined, first = [], 0, "", 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r" *```", line):
            block, joined = (0 if block else number), ""
            continue
        if not block:
            found += [Command(name, number, code.strip(), 0) for code in re.findall(r"`([^`]+)`", line)]
            continue
        first = first if joined else number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        text, joined = re.sub(r"^\s*\$ ", "", joined + line).strip(), ""
        if GRADRING.match(text) or SHELL.match(text) or OTHERS.match(text):
            found.append(Command(name, first, text, block))
    return found


def documents(repository):
    for folder, folders, names in os.walk(repository):
        folders[:] = sorted(it for it in folders if not it.startswith((".", "build")))
        for name in sorted(names):
            if name.endswith(".md"):
                path = pathlib.Path(folder, name)
                yield path, str(path.relative_to(repository))


def without_comment(text):
    return re.sub(r"\s+#.*", "", text)


class Checker:
    def __init__(self, program, repository, build):
        self.program, self.repository = program, repository
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        self.cmake_presets = {it["name"] for it in presets["configurePresets"]}
        listed = subprocess.run([program, "train", "--preset", "ls"], capture_output=True, text=True, check=True).stdout
        self.presets = {"ls"} | {line for line in listed.splitlines() if line and " " not in line}
        self.helps = {}
        self.tests = self.labels = None
        if build:
            shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, check=True)
            tests = json.loads(shown.stdout)["tests"]
            self.tests = [it["name"] for it in tests]
            self.labels = {label for it in tests for at in it["properties"] if at["name"] == "LABELS" for label in at["value"]}
        self.count = 0

    def problems(self, command, variables):
        """What is wrong with a command, in words. `variables`: those that lines above it set."""
        variables |= dict(re.findall(r'^(\w+)="(.*)"$', command.text))
        text = without_comment(command.text)
        for name, rest in WITHIN.findall(re.sub(r"\$(\w+)", lambda it: variables.get(it[1], it[0]), text)):
            yield from self.of_gradring([name, *rest.split()])
            yield from self.of_preset("gradring", self.presets, rest)
        text = re.sub(r" [|>&].*|;.*", "", text)
        if match := re.match(r"(?:sudo )?(scripts/[a-z_]+\.(?:sh|py))\b(.*)", text):
            yield from self.of_script(*match.groups())
        yield from self.of_preset("CMakePresets.json", self.cmake_presets, WITHIN.sub("", text))
        if self.tests and "ctest" in text:
            for option, name in re.findall(r"ctest [^&]*?-(R|L) '?([^' ]+)'?", text):
                self.count += 1
                if name != "NAME" and not any(re.search(name, it) for it in (self.tests if option == "R" else self.labels)):
                    yield f"no test matches -{option} {name}"

    def help_of(self, command):
        if command not in self.helps:
            shown = subprocess.run([self.program, *command, "--help"], capture_output=True, text=True)
            self.helps[command] = shown.stdout if shown.returncode == 0 else ""
        return self.helps[command]

    def of_gradring(self, words):
        command = ("launch",) if words[0] == "gradrun" else (words[1],)
        if not re.fullmatch("[a-z]+(-[a-z]+)*", command[0]) or command[0] in ("help", "version", "completions"):
            return
        for word in words[2:]:
            if command not in GROUPS or not re.fullmatch("[a-z][a-z-]*", word):
                break
            command += (word,)
        if not self.help_of(command):
            yield f"gradring {' '.join(command)} is no command"
            return
        for word in words[1:]:
            if command in (("launch",), ("bench", "seeds")) and word == "train":
                command = ("train",)
            elif command == ("launch",) and (word == "--" or re.search(r"python|\.py$", word)):
                return  # options of another program
            elif option := re.match(r"--[a-z][a-z0-9-]*", word):
                self.count += 1
                if not re.search(rf"(^|[ ,/|]){option[0]}([ ,=\[]|$)", self.help_of(command), re.MULTILINE):
                    yield f"gradring {' '.join(command)} has no option {option[0]}"

    def of_preset(self, owner, known, text):
        for name in re.findall(r"--preset[ =]([a-z][a-z0-9.-]*)", text):
            self.count += 1
            if name not in known:
                yield f"{owner} has no preset {name}"

    def of_script(self, script, arguments):
        self.count += 1
        path = self.repository / script
        if not path.is_file():
            yield f"there is no {script}"
            return
        for option in re.findall(r"(?<= )--[a-z][a-z-]*", arguments.split(" build/", 1)[0]):
            self.count += 1
            if not re.search(rf"{option}\b", path.read_text()):
                yield f"{script} has no option {option}"


def check(arguments):
    repository = arguments.repository.resolve()
    checker = Checker(arguments.program, repository, arguments.build)
    failed = 0
    for path, name in documents(repository):
        variables = {}
        for command in commands_of(path, name):
            for problem in checker.problems(command, variables):
                print(f"{name}:{command.line}: {problem}: {command.text}", file=sys.stderr)
                failed += 1
    print(f"{checker.count} options, scripts, presets and filters in documents")
    return 1 if failed else 0


def reason_not_to_run(command, slow):
    if OTHERS.match(command.text):
        return "is not gradring"
    for pattern, reason in NOT_RUN:
        if re.search(pattern, without_comment(command.text)):
            return reason
    return "" if slow or not SLOW.search(command.text) else "is slow"


def grey_png(size):
    """A square picture, for `gradring predict`."""
    rows = b"".join(b"\0" + bytes(255 if x > size // 2 else 0 for x in range(size)) for _ in range(size))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Runner:
    def __init__(self, program, slow):
        self.program, self.slow = program, slow
        self.simulated_gpu = program.parent / "libgradring_simulated_gpu.so"
        self.ran = self.failed = 0
        self.skipped = {}

    def document(self, path, name):
        commands = [it for it in commands_of(path, name) if it.block]
        blocks = {}
        for it in commands:
            blocks.setdefault(it.block, []).append(it)
        blocks = [it for it in blocks.values() if any(re.search(r"\bgrad(ring|run) ", at.text) for at in it)]
        if not blocks:
            return
        with tempfile.TemporaryDirectory() as folder:
            for place in ("bin", "build/release"):
                pathlib.Path(folder, place).mkdir(parents=True)
                for tool in ("gradring", "gradrun"):
                    pathlib.Path(folder, place, tool).symlink_to(self.program)
            pathlib.Path(folder, "seven.png").write_bytes(grey_png(28))
            if toml := re.search(r"^```toml\n(.*?)^```", path.read_text(), re.M | re.S):  # docs/models.md
                pathlib.Path(folder, "small.toml").write_text(toml[1])
            runnable = [at for it in blocks for at in it if not self.skip(at)]
            if runnable and name in BEFORE:
                self.shell(folder, name, [Command(name, 0, BEFORE[name], 0)])
            for block in blocks:
                chosen = [it for it in block if it in runnable]
                if any(re.search(r"\bgrad(ring|run) ", it.text) for it in chosen):
                    self.shell(folder, name, chosen)

    def skip(self, command):
        reason = reason_not_to_run(command, self.slow)
        if not reason and "--simulate-gpu" in command.text and not self.simulated_gpu.exists():
            reason = f"needs {self.simulated_gpu.name}, which this build lacks"
        if reason:
            self.skipped.setdefault(reason, []).append(f"{command.file}:{command.line}")
        return reason

    def shell(self, folder, name, commands):
        script = "".join(f"at={it.line}\n{it.text}\nended {it.line} $?\n" for it in commands)
        codes_file = pathlib.Path(folder, "codes")
        codes_file.write_text("")
        script = f'ended() {{ echo "$1 $2" >>"{codes_file}"; }}\n{script}wait\n'
        environment = os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": folder,
                                    "GRADRING_CACHE_DIR": f"{folder}/cache"}
        ran = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True)
        codes = dict(map(int, it.split()) for it in codes_file.read_text().splitlines())
        for command in commands:
            expected = next((codes for (file, pattern), codes in EXIT_CODES.items()
                             if file == name and re.search(pattern, command.text)), {0})
            self.ran += 1
            if codes.get(command.line) not in expected:
                self.failed += 1
                print(f"{name}:{command.line}: exit code {codes.get(command.line)}: {command.text}\n{ran.stdout}{ran.stderr}",
                      file=sys.stderr)


def run(arguments):
    runner = Runner(pathlib.Path(arguments.program).resolve(), arguments.slow)
    for path, name in documents(ROOT):
        if not arguments.files or name in arguments.files:
            runner.document(path, name)
    for reason, places in sorted(runner.skipped.items()):
        print(f"not run, {reason}: {' '.join(places)}")
    print(f"{runner.ran - runner.failed} passed, {runner.failed} failed")
    return 1 if runner.failed or not runner.ran else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    checking = commands.add_parser("check")
    checking.add_argument("program")
    checking.add_argument("--repository", type=pathlib.Path, default=ROOT)
    checking.add_argument("--build", help="a build folder with tests")
    checking.set_defaults(call=check)
    running = commands.add_parser("run")
    running.add_argument("program")
    running.add_argument("--slow", action="store_true")
    running.add_argument("files", nargs="*", help="such as docs/faults.md; default all")
    running.set_defaults(call=run)
    arguments = parser.parse_args()
    return arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
