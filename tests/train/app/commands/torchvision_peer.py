# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 between torchvision and gradring: logits, training steps with all tensors, fine-tuning, ONNX.

  torchvision_peer.py GRADRING [ONNX_PYTHON]     JSON: the largest relative difference of each part; fails above 1e-5

GRADRING is the program; ONNX_PYTHON a python3 with onnx and onnxruntime (default: this one; null without them). Works
in the current folder, which must be empty. Exits with 77 where torch or torchvision is missing, and names it.
"""
import json
import os
import struct
import subprocess
import sys

try:
    import numpy
    import torch
    import torchvision
except ImportError as error:
    print(f"{sys.executable} does not import {error.name}")
    sys.exit(77)

TOLERANCE = 1e-5
SAMPLES = 20
SGD = dict(lr=0.05, momentum=0.9, weight_decay=1e-4)
OPTIONS = ["--optimizer", "sgd", "--lr", "0.05", "--momentum", "0.9", "--weight-decay", "1e-4"]
DATA = ["--dataset", "cifar10", "--data-dir", "data"]


def gradring(*words):
    end = subprocess.run([sys.argv[1], *words], capture_output=True, text=True)
    assert end.returncode == 0, f"{' '.join(words)}: exit code {end.returncode}\n{end.stderr}"


def write_images():
    """Noise of a few colors, in CIFAR-10's files: all training samples are one step."""
    random = numpy.random.default_rng(1)
    images = random.integers(0, 256, (SAMPLES, 3, 8, 8), dtype=numpy.uint8).repeat(4, 2).repeat(4, 3)
    labels = random.integers(0, 10, SAMPLES, dtype=numpy.uint8)
    records = [bytes([label]) + image.tobytes() for image, label in zip(images, labels)]
    os.makedirs("data/cifar10", exist_ok=True)
    for file in range(5):
        with open(f"data/cifar10/data_batch_{file + 1}.bin", "wb") as out:
            out.write(b"".join(records[file::5]))
    with open("data/cifar10/test_batch.bin", "wb") as out:
        out.write(b"".join(records))
    with open("images.idx", "wb") as out:
        out.write(b"\0\0\x08\x04" + struct.pack(">4i", SAMPLES, 32, 32, 3))
        out.write(images.transpose(0, 2, 3, 1).tobytes())
    return (torch.from_numpy(images).float() / 255 - 0.5) / 0.5, torch.from_numpy(labels).long()


def difference(ours, theirs):
    ours, theirs = torch.as_tensor(ours).double(), torch.as_tensor(theirs).double()
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return ((ours - theirs).norm() / theirs.norm().clamp_min(1e-12)).item()


def state_of(run, step):
    """The tensors of a checkpoint, as PyTorch reads them."""
    gradring("export", f"{run}/checkpoints/step-{step}", "--output", f"{run}.pt")
    return torch.load(f"{run}.pt", weights_only=True)


def tensor_difference(state, model):
    theirs = {name: tensor for name, tensor in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    assert set(state) - set(model.state_dict()) == set(), set(state) - set(theirs)
    return max(difference(state[name], tensor) for name, tensor in theirs.items())


def train(model, images, labels, steps):
    """Steps of SGD over all samples; returns the losses."""
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], **SGD)
    model.train()
    losses = []
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_of(run):
    with open(f"{run}/metrics.jsonl") as file:
        events = [json.loads(line) for line in file]
    return [event["loss"] for event in events if event["event"] == "train"]


def loss_difference(run, theirs):
    ours = losses_of(run)
    assert len(ours) == len(theirs), (ours, theirs)
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))


def fine_tune(images, labels, found):
    """Another head on a frozen backbone, by two ranks: begins as a step with a rate of 0 leaves it."""
    pretrained = torchvision.models.resnet18()
    torch.save(pretrained.state_dict(), "pretrained.pt")
    words = ["train", "--model", "resnet18", *DATA, "--weights", "pretrained.pt", "--reinit", "fc.*",
             "--group", "*:frozen", "--group", "fc.*:frozen=false", "--nprocs", "2", "--sync-batchnorm",
             "--batch-size", str(SAMPLES // 2), *OPTIONS]
    gradring(*words, "--lr", "0", "--steps", "1", "--run-dir", "begun")
    gradring(*words, "--steps", "3", "--run-dir", "tuned")
    begun = state_of("begun", 1)
    model = torchvision.models.resnet18()
    model.load_state_dict(pretrained.state_dict())
    model.requires_grad_(False)
    model.fc = torch.nn.Linear(512, 10)
    model.fc.load_state_dict({"weight": begun["fc.weight"], "bias": begun["fc.bias"]})
    losses = train(model, images, labels, 3)
    found["fine-tuning: losses"] = loss_difference("tuned", losses)
    found["fine-tuning: tensors"] = tensor_difference(state_of("tuned", 3), model)


def onnx_difference(python, logits):
    peer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnx_peer.py")
    end = subprocess.run([python, peer, "logits", "w.onnx", "images.idx", "onnx.npy"], capture_output=True, text=True)
    if end.returncode == 77:  # a package is missing
        return None
    assert end.returncode == 0, end.stderr + end.stdout
    return difference(numpy.load("onnx.npy"), logits)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels = write_images()
    model = torchvision.models.resnet18(num_classes=10)
    torch.save(model.state_dict(), "w.pt")
    found = {}

    model.eval()
    with torch.no_grad():
        logits = model(images)
    gradring("eval", "w.pt", "--model", "resnet18", *DATA, "--logits", "logits.npy")
    found["logits"] = difference(numpy.load("logits.npy"), logits)
    gradring("export", "w.pt", "--model", "resnet18", "--dataset", "cifar10", "--output", "w.onnx")
    found["onnx"] = onnx_difference(sys.argv[-1] if len(sys.argv) > 2 else sys.executable, logits)

    gradring("train", "--model", "resnet18", *DATA, "--weights", "w.pt", *OPTIONS, "--batch-size", str(SAMPLES),
             "--steps", "1", "--run-dir", "one")
    losses = train(model, images, labels, 1)
    found["step: loss"] = loss_difference("one", losses)
    found["step: tensors"] = tensor_difference(state_of("one", 1), model)
    fine_tune(images, labels, found)
    print(json.dumps(found))
    assert max(each for each in found.values() if each is not None) < TOLERANCE, found


main()
