# SPDX-License-Identifier: Apache-2.0
"""One rank of torch.distributed's gloo backend, measured as comm/bench/collective_bench.cpp measures gradring.

Reads lines "COLLECTIVE BYTES WARMUPS ITERATIONS FRESH" from stdin; answers each with a line of ITERATIONS times, in
seconds.
Environment: RANK, WORLD_SIZE, GRADRING_GLOO_STORE (rendezvous file), GRADRING_GLOO_TIMEOUT (seconds).
"""
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group(
    "gloo",
    init_method="file://" + os.environ["GRADRING_GLOO_STORE"],
    rank=int(os.environ["RANK"]),
    world_size=int(os.environ["WORLD_SIZE"]),
    timeout=timedelta(seconds=float(os.environ["GRADRING_GLOO_TIMEOUT"])),
)
print("ready gloo of torch", torch.__version__, flush=True)

for line in sys.stdin:
    collective, *numbers = line.split()
    size, warmups, iterations, fresh = map(int, numbers)
    tensor = torch.zeros(size // 8, dtype=torch.int64) if collective == "agreement" else torch.zeros(size // 4)
    call = dist.barrier if collective == "barrier" else lambda: dist.all_reduce(tensor)
    dist.barrier()
    times = []
    for iteration in range(-warmups, iterations):
        if fresh:
            tensor.zero_()
        begin = time.perf_counter()
        call()
        if iteration >= 0:
            times.append(time.perf_counter() - begin)
    print(*times, flush=True)
