# SPDX-License-Identifier: Apache-2.0
"""Reads the event files of a run by TensorBoard, and compares them with metrics.jsonl and the checkpoints: check_events.py RUN.

Prints as JSON what there is to see. Exit codes: 0; 1 a difference; 77 this Python has no tensorboard."""
import collections
import json
import math
import pathlib
import struct
import sys

try:
    import numpy as np
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print(f"{sys.executable} does not import tensorboard")
    sys.exit(77)

TAGS = {"loss": "train/loss", "lr": "train/learning_rate", "gradient_norm": "train/gradient_norm",
        "loss_scale": "train/loss_scale", "epoch": "train/epoch", "underflow": "train/underflow",
        "samples_per_second": "speed/samples_per_second", "seconds": "speed/seconds", "data_wait": "speed/data_wait",
        "exposed_communication": "speed/exposed_communication", "forward": "speed/forward",
        "backward": "speed/backward", "optimizer": "speed/optimizer"}


def read(folder, purges=True):
    everything = {"scalars": 0, "histograms": 0, "images": 0, "tensors": 0}
    return EventAccumulator(str(folder), size_guidance=everything, purge_orphaned_data=purges).Reload()


def expected_scalars(run):
    """The scalars by tag, from metrics.jsonl: [(step, value)]."""
    scalars = collections.defaultdict(list)
    for event in map(json.loads, open(run / "metrics.jsonl")):
        step = event.get("step")
        if event["event"] == "train":
            for member, tag in TAGS.items():
                if member in event:
                    scalars[tag].append((step, event[member]))
        if event["event"] == "eval":
            for member in ("accuracy", "loss", "top5_accuracy", "ema_accuracy", "ema_loss"):
                if member in event:
                    scalars[f"{event.get('split', 'test')}/{member}"].append((step, event[member]))
        if event["event"] == "ranks":
            for member in ("seconds", "data_wait", "exposed_communication", "memory"):
                for rank, value in enumerate(event[member]):
                    scalars[f"ranks/{member}/{rank}"].append((step, value))
    return scalars


def as_float(value):
    """What a float holds of a number; a NaN or infinity, which JSON has as null, becomes the text nan."""
    value = float(np.float32(np.nan if value is None else value))
    return value if math.isfinite(value) else "nan"


def check_scalars(run, events):
    expected = expected_scalars(run)
    assert set(events.Tags()["scalars"]) == set(expected), set(events.Tags()["scalars"]) ^ set(expected)
    for tag, values in expected.items():
        found = [(each.step, as_float(each.value)) for each in events.Scalars(tag)]
        assert found == [(step, as_float(value)) for step, value in values], (tag, found, values)


def tensors_of(path):
    """A safetensors file of f32."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    return {name: np.frombuffer(data[8 + length:], np.float32)[about["data_offsets"][0] // 4:about["data_offsets"][1] // 4]
            for name, about in header.items() if name != "__metadata__"}


def check_histogram(histogram, values):
    values = values.astype(np.float64)
    counts = np.histogram(values, [histogram.min] + histogram.bucket_limit)[0]
    assert histogram.bucket == list(counts), np.abs(histogram.bucket - counts).sum()
    found = [histogram.num, histogram.min, histogram.max, histogram.sum, histogram.sum_squares]
    expected = [values.size, values.min(), values.max(), values.sum(), np.square(values).sum()]
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9), (found, expected)


def check_weights(run, events):
    """Histograms of the weights at steps of which there is a checkpoint. Returns their number."""
    checked = 0
    for folder in (run / "checkpoints").glob("step-*"):
        for name, values in tensors_of(folder / "model.safetensors").items():
            for each in events.Histograms(f"weights/{name}"):
                if each.step == int(folder.name.removeprefix("step-")):
                    check_histogram(each.histogram_value, values)
                    checked += 1
    return checked


def check_gradients(run, events):
    """The norm of all gradients, as far as there are histograms, is that of the step. Returns the number of steps."""
    norms = {step: norm for step, norm in expected_scalars(run)["train/gradient_norm"]}
    squares = collections.defaultdict(float)
    for tag in events.Tags()["histograms"]:
        if tag.startswith("gradients/"):
            for each in events.Histograms(tag):
                squares[each.step] += each.histogram_value.sum_squares
    for step, square in squares.items():
        assert math.isclose(math.sqrt(square), norms[step], rel_tol=1e-5), (step, math.sqrt(square), norms[step])
    return len(squares)


def main():
    run = pathlib.Path(sys.argv[1])
    folder = run / "tensorboard"
    events = read(folder)
    check_scalars(run, events)
    images = {tag: [[each.step, each.width, each.height] for each in events.Images(tag)]
              for tag in events.Tags()["images"]}
    for tag in images:
        for each in events.Images(tag):  # the PNG's own size
            assert struct.unpack(">II", each.encoded_image_string[16:24]) == (each.width, each.height)
    print(json.dumps({"files": len(list(folder.iterdir())), "steps": len(events.Scalars("train/loss")),
                      "steps_with_discarded": len(read(folder, purges=False).Scalars("train/loss")),
                      "weights": check_weights(run, events), "gradients": check_gradients(run, events),
                      "images": images,
                      "texts": {tag: [each.tensor_proto.string_val[0].decode() for each in events.Tensors(tag)]
                                for tag in events.Tags()["tensors"]}}))


main()
