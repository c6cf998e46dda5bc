# SPDX-License-Identifier: Apache-2.0
"""Epochs of MNIST by PyTorch on a GPU, as its users speed it up, step by step: what gpu_check.sh lays beside ours.

Every variant trains the same ConvNet with fused Adam; the whole set lies on the GPU, so that no loader is in the way.
  eager           f32
  amp             f16 by autocast, GradScaler
  channels_last   amp, NHWC
  compile         channels_last, torch.compile
  graph           compile with CUDA graphs (mode="reduce-overhead")
  step_graph      channels_last, the whole step from gathering the batch to Adam one CUDA graph
  compile_step    compile, likewise

Usage: pytorch_gpu.py [--data-dir DIR] [--batch-size N] [--epochs N] [--variants NAME,...] [--json FILE]
Without --data-dir the images are noise: the time is the same. Prints a table: seconds of the median epoch.
"""
import argparse
import gzip
import json
import os
import statistics
import time

import torch
from torch.nn import functional as F

from pytorch_training import Network

CONVNET = ["Conv2d(1, 32, 3)", "ReLU()", "MaxPool2d(2)", "Conv2d(32, 64, 3)", "ReLU()", "MaxPool2d(2)", "Flatten()",
           "Linear(1600, 256)", "ReLU()", "Linear(256, 10)"]
RECORDED = ("step_graph", "compile_step")
VARIANTS = ("eager", "amp", "channels_last", "compile", "graph", *RECORDED)


def read_idx(folder, name, header):
    for path, opener in ((os.path.join(folder, name), open), (os.path.join(folder, name + ".gz"), gzip.open)):
        if os.path.exists(path):
            with opener(path, "rb") as file:
                return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)
    raise SystemExit(f"there is no {name} in {folder}")


def load(folder):
    if not folder:
        return torch.randint(0, 256, (60000, 1, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (60000,))
    images = read_idx(folder, "train-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    return images, read_idx(folder, "train-labels-idx1-ubyte", 8).long()


class Epochs:
    def __init__(self, variant, images, labels, batch_size):
        self.half = variant != "eager"
        self.format = torch.channels_last if variant not in ("eager", "amp") else torch.contiguous_format
        self.images, self.labels, self.batch_size = images, labels, batch_size
        layers = [{"module": module, "reads": [i]} for i, module in enumerate(CONVNET)]
        self.model = Network(layers).cuda().to(memory_format=self.format)
        self.forward = self.model
        if variant in ("compile", "compile_step"):
            self.forward = torch.compile(self.model)
        elif variant == "graph":
            self.forward = torch.compile(self.model, mode="reduce-overhead")
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True, capturable=variant in RECORDED)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.half)

    def step(self, batch):
        x = (self.images[batch].float() / 255 - 0.5) / 0.5
        x = x.contiguous(memory_format=self.format)
        with torch.autocast("cuda", torch.float16, enabled=self.half):
            loss = F.cross_entropy(self.forward(x), self.labels[batch])
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def run(self):
        order = torch.randperm(len(self.labels), device="cuda")
        for batch in order.split(self.batch_size):
            loss = self.step(batch)
        return loss


class RecordedEpochs(Epochs):
    """Replays a CUDA graph for every step; the smaller last batch of an epoch is launched kernel by kernel."""

    def __init__(self, variant, images, labels, batch_size):
        super().__init__(variant, images, labels, batch_size)
        self.batch = torch.arange(batch_size, device="cuda")
        stream = torch.cuda.Stream()  # PyTorch asks for a side stream before a capture
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                super().step(self.batch)
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = super().step(self.batch)

    def step(self, batch):
        if len(batch) < self.batch_size:
            return super().step(batch)
        self.batch.copy_(batch)
        self.graph.replay()
        return self.loss


def timed(epochs, count):
    for _ in range(2):  # compiles, allocates, records
        epochs.run()
    seconds = []
    for _ in range(count):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loss = epochs.run()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": statistics.median(seconds), "least": min(seconds), "loss": float(loss)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", default="")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--json")
    options = parser.parse_args()
    variants = options.variants.split(",")
    if unknown := set(variants) - set(VARIANTS):
        parser.error(f"no variant is called {', '.join(sorted(unknown))}; expected some of {', '.join(VARIANTS)}")
    folder = options.data_dir if os.path.isdir(options.data_dir) else ""
    images, labels = (tensor.cuda() for tensor in load(folder))
    torch.backends.cudnn.benchmark = True
    results = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "card": torch.cuda.get_device_name(),
               "batch_size": options.batch_size, "variants": {}}
    for variant in variants:
        torch.manual_seed(0)
        try:
            kind = RecordedEpochs if variant in RECORDED else Epochs
            results["variants"][variant] = timed(kind(variant, images, labels, options.batch_size), options.epochs)
        except Exception as error:  # torch.compile needs a C compiler, and more
            results["variants"][variant] = {"error": str(error).splitlines()[0][:200]}
        print(variant, results["variants"][variant], flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


main()
