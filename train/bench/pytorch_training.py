# SPDX-License-Identifier: Apache-2.0
"""A training as a PyTorch user writes it, timed: the other side of `gradring bench compare`.

Runs once per rank, with RANK and WORLD_SIZE set. The first line on stdin is JSON:
  images, labels     files of raw bytes, one a pixel (NHWC) and one a label
  test_images, test_labels   the same of the test set, on which rank 0 evaluates after each training; "": it does not
  weights            file of the first weights, f32 in state_dict order; "": PyTorch's default after manual_seed(seed)
  shape              of one image: [height, width, channels]
  layers             of the model: {"module": "Conv2d(1, 32, 3)" or "x + residual", "reads": [0 for the image, i for the
                     output of the i-th layer, ...], "frozen": names of the parameters that are not trained, or nothing}
  batch_size         per rank
  epochs, steps      how much is timed; steps 0 means whole epochs
  warmup             untimed steps before; the weights start anew after them
  threads            of this rank
  channels_last      memory format of activations and weights
  dataloader         take batches from a torch.utils.data.DataLoader, rather than by indexing the tensor
  seed, store        of weights and shuffles; the file by which the ranks meet
It answers {"blas": what multiplies matrices: "MKL 2024.2", or the path of a library}, and each further line on stdin with a training from the same first weights:
{"seconds": ..., "processor_seconds": ..., "loss": ..., "resident_bytes": ..., and if evaluated "accuracy": ...}
"""
import ctypes
import json
import os
import re
import resource
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Network(nn.Module):
    """The layers of a model, written as torch.nn's modules, or as expressions of x and residual. Whatever may be computed in
    place is, as in torchvision's networks."""

    def __init__(self, layers):
        super().__init__()
        self.reads = [layer["reads"] for layer in layers]
        readers = [sum(reads.count(output) for reads in self.reads) for output in range(len(layers) + 1)]
        self.modules_in_order = nn.ModuleList()
        for layer, reads in zip(layers, self.reads):
            source = self.modules_in_order[reads[0] - 1] if reads[0] > 0 else None
            # autograd keeps the outputs of other modules
            overwrites = readers[reads[0]] == 1 and isinstance(source, (nn.Conv2d, nn.Linear, nn.BatchNorm2d))
            module = module_of(layer["module"], overwrites)
            for name in layer.get("frozen", ()):
                getattr(module, name).requires_grad_(False)
            self.modules_in_order.append(module)

    def forward(self, x):
        outputs = [x]
        for module, reads in zip(self.modules_in_order, self.reads):
            outputs.append(module(*[outputs[output] for output in reads]))
        return outputs[-1]


class Expression(nn.Module):
    def __init__(self, text):
        super().__init__()
        self.forward = eval("lambda x, residual=None: " + text)


def module_of(text, overwrites):
    if text == "x + residual" and overwrites:
        return Expression("x.add_(residual)")
    if text.startswith("x "):
        return Expression(text)
    module = eval(text, vars(nn))
    if overwrites and hasattr(module, "inplace"):
        module.inplace = True
    return module


def read(path):
    return torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.uint8)


def load_weights(model, path):
    parameters = list(model.parameters())
    values = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.float32)
    with torch.no_grad():
        for parameter, part in zip(parameters, values.split([each.numel() for each in parameters])):
            parameter.copy_(part.view_as(parameter))


class FileOfSymbol(ctypes.Structure):
    """Dl_info of dladdr(3)."""
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


def blas():
    """The library from which torch has sgemm; if that is torch itself, as in PyPI's wheels, what it was built with. Others
    with blas in their names are loaded as well: CUDA's, numpy's own."""
    torch_cpu = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    found = FileOfSymbol()
    try:
        sgemm = ctypes.cast(ctypes.CDLL(torch_cpu).sgemm_, ctypes.c_void_p)
        ctypes.CDLL(None).dladdr(sgemm, ctypes.byref(found))
    except (OSError, AttributeError):  # a build in one file, or without Fortran's interface
        pass
    file = os.path.realpath(os.fsdecode(found.file or b""))
    if found.file and file != os.path.realpath(torch_cpu):
        return file
    built = torch.__config__.show()
    mkl = re.search(r"Math Kernel Library Version (\S+?)(-\S*)? ", built)
    if mkl:
        return f"MKL {mkl[1]}"
    name = re.search(r"BLAS_INFO=(\w+)", built)
    return f"{name[1]}, within torch" if name else "unknown, within torch"


class Training:
    """One rank's model, data and optimizer. The whole set lies in memory as normalised floats."""

    def __init__(self, settings, rank, world):
        self.settings, self.rank, self.world = settings, rank, world
        self.format = torch.channels_last if settings["channels_last"] else torch.contiguous_format
        self.images, self.labels = self.read_set(settings["images"], settings["labels"])

        torch.manual_seed(settings["seed"])
        model = Network(settings["layers"]).to(memory_format=self.format)
        if settings["weights"]:
            load_weights(model, settings["weights"])
        self.first_weights = {name: value.clone() for name, value in model.state_dict().items()}
        self.plain = model
        self.model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if world > 1 else model
        self.start_anew()

    def read_set(self, images, labels):
        height, width, channels = self.settings["shape"]
        pixels = read(images).view(-1, height, width, channels).permute(0, 3, 1, 2)
        return ((pixels.float() / 255 - 0.5) / 0.5).contiguous(memory_format=self.format), read(labels).long()

    def evaluate(self):
        """The share of the test set that is classified correctly; nothing without one, or on another rank."""
        if not self.settings["test_images"] or self.rank > 0:
            return {}
        images, labels = self.read_set(self.settings["test_images"], self.settings["test_labels"])
        with torch.no_grad():
            correct = sum((self.plain(x).argmax(1) == y).sum().item()
                          for x, y in zip(images.split(250), labels.split(250)))
        return {"accuracy": correct / len(labels)}

    def start_anew(self):
        self.plain.load_state_dict(self.first_weights)
        self.optimizer = torch.optim.Adam(self.plain.parameters(), lr=1e-3)

    def batches(self, epoch):
        size, seed = self.settings["batch_size"], self.settings["seed"]
        data = TensorDataset(self.images, self.labels)
        sampler = DistributedSampler(data, self.world, self.rank, seed=seed)
        sampler.set_epoch(epoch)
        if self.settings["dataloader"]:
            yield from DataLoader(data, batch_size=size, sampler=sampler)
            return
        for indices in torch.tensor(list(sampler)).split(size):
            yield self.images[indices], self.labels[indices]

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, epochs, steps):
        """Seconds, the processor's seconds of this rank, and the mean loss of the last epoch's batches."""
        begin, begin_processor, done = time.perf_counter(), time.process_time(), 0
        for epoch in range(epochs):
            losses = []
            for x, y in self.batches(epoch):
                losses.append(self.step(x, y))
                done += 1
                if done == steps:
                    break
            if done == steps:
                break
        loss = torch.stack(losses).mean().item()
        return {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - begin_processor,
                "loss": loss}


def main():
    settings = json.loads(sys.stdin.readline())
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(settings["threads"])
    if world > 1:
        dist.init_process_group("gloo", init_method="file://" + settings["store"], rank=rank, world_size=world)
    training = Training(settings, rank, world)
    if settings["warmup"]:
        training.run(1, settings["warmup"])
    print(json.dumps({"blas": blas()}), flush=True)
    for _ in sys.stdin:
        training.start_anew()
        if world > 1:
            dist.barrier()
        answer = training.run(settings["epochs"], settings["steps"])
        answer["resident_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(answer | training.evaluate()), flush=True)


if __name__ == "__main__":
    main()
