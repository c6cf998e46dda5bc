# SPDX-License-Identifier: Apache-2.0
"""What ONNX's own checker and onnxruntime say of an exported model; the packages onnx and onnxruntime of PyPI.

  onnx_peer.py check MODEL                 JSON: opset, IR version, inputs and outputs after shape inference, metadata
  onnx_peer.py compare MODEL IDX LOGITS    JSON: the largest relative difference of its logits on the images of an IDX file
                                           from those of a .npy, over batches of several sizes
  onnx_peer.py accuracy MODEL IDX LABELS   JSON: correct predictions on raw images
  onnx_peer.py logits MODEL IDX OUT        logits of all images as a .npy

Images are of MODEL's height, width and channels. Exits with 77 where a package is missing, and names it.
"""
import gzip
import json
import os
import sys

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"{sys.executable} does not import {error.name}")
    sys.exit(77)


def idx(path):
    for name, opener in ((path, open), (path + ".gz", gzip.open)):
        if os.path.exists(name):
            with opener(name, "rb") as file:
                data = file.read()
            rank = data[3]
            return numpy.frombuffer(data, dtype=numpy.uint8, offset=4 + 4 * rank)
    raise FileNotFoundError(path)


def session_and_images(model, path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session, idx(path).reshape([-1] + session.get_inputs()[0].shape[1:])


def run(session, images, batch):
    parts = [session.run(["logits"], {"images": images[at:at + batch]})[0] for at in range(0, len(images), batch)]
    return numpy.concatenate(parts)


def shape_of(value):
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def check(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    values = {value.name: shape_of(value) for value in inferred.graph.value_info}
    for value in list(inferred.graph.input) + list(inferred.graph.output):
        values[value.name] = shape_of(value)
    print(json.dumps({
        "ir_version": model.ir_version, "opset": [entry.version for entry in model.opset_import],
        "nodes": [node.op_type for node in model.graph.node], "shapes": values,
        "weights": [[tensor.name, list(tensor.dims)] for tensor in model.graph.initializer],
        "metadata": {entry.key: entry.value for entry in model.metadata_props}}))


def compare(model, images_path, logits_path):
    session, images = session_and_images(model, images_path)
    ours = numpy.load(logits_path)
    differences = {}
    for batch in (1, 3, 7, 250, len(images)):
        some = images[:max(batch * 3 + 1, 50)] if batch < 100 else images
        theirs = run(session, some, batch)
        expected = ours[:len(some)]
        assert theirs.shape == expected.shape, (theirs.shape, expected.shape)
        differences[batch] = (numpy.abs(theirs - expected) / numpy.maximum(1, numpy.abs(expected))).max().item()
    print(json.dumps({"images": len(images), "differences": differences}))


def accuracy(model, images_path, labels_path):
    session, images = session_and_images(model, images_path)
    labels = idx(labels_path)
    print(json.dumps({"samples": len(labels), "correct": int((run(session, images, 250).argmax(1) == labels).sum())}))


def logits(model, images_path, out):
    session, images = session_and_images(model, images_path)
    numpy.save(out, run(session, images, 250))


if __name__ == "__main__":
    {"check": check, "compare": compare, "accuracy": accuracy, "logits": logits}[sys.argv[1]](*sys.argv[2:])
