# SPDX-License-Identifier: Apache-2.0
"""Runs many command lines of torchrun in turn; torch is imported once. Each line of stdin's file is a JSON object:
{"words": [...], "variables": {...}, "folder": "..."}. Prints an exit code a line."""
import json
import os
import sys

import torch.distributed.run


def run(case):
    os.chdir(case["folder"])
    os.environ.update(case["variables"])
    silence = os.open("torchrun.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    torch.distributed.run.main(case["words"])


for line in open(sys.argv[1]):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run(json.loads(line))
            code = 0
        except BaseException as error:  # SystemExit too: this process must not go on as the parent
            print(repr(error), file=sys.stderr, flush=True)
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
