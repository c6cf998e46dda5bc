# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the tests of checkpoint files.

  torch_peer.py describe FILE             one JSON line a tensor of a .pt, as torch.load(weights_only=True) sees it
  torch_peer.py write FOLDER              .pt and .npy files of all kinds, and FOLDER/expected.json that describes them
  torch_peer.py logits PT SAFETENSORS GOLDEN   the largest difference of the ConvNet's logits from the golden ones
  torch_peer.py compare WEIGHTS IDX LOGITS     the same, of a .pt or .safetensors on the images of an IDX file, from a .npy
  torch_peer.py state_dicts FOLDER             FOLDER/{convnet,sequential,attributes,parallel,compiled}.pt, the same weights
  torch_peer.py optimizer_steps KIND WEIGHTS OPTIMIZER FOLDER OUT STEPS [FROZEN]   goes on training with an exported
                                               optimizer, on all images of FOLDER at once: OUT-<i>.pt and
                                               OUT-<i>-optimizer.pt of each step; without the parameters whose names
                                               begin with FROZEN
  torch_peer.py distance A B                   the largest difference of two files of weights
  torch_peer.py about FILE                     the record beside the state_dict of a .pt; also that torch.load reads the file
"""
import collections
import hashlib
import json
import struct
import sys
import zipfile

import numpy
import torch


def describe(name, tensor):
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if dense.dtype == torch.bfloat16:
        raw = dense.view(torch.int16).numpy().tobytes()
    else:
        raw = dense.numpy().tobytes()
    return {"name": name, "dtype": str(dense.dtype), "shape": list(dense.shape), "sha256": hashlib.sha256(raw).hexdigest()}


def convnet():
    nn = torch.nn
    model = nn.Module()
    model.conv_layers = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2))
    model.fc_layers = nn.Sequential(nn.Linear(1600, 256), nn.ReLU(), nn.Linear(256, 10))
    return model


def sequential():
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(1600, 256), nn.ReLU(), nn.Linear(256, 10))


def attributes():
    nn = torch.nn
    model = nn.Module()
    model.conv1, model.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
    model.fc1, model.fc2 = nn.Linear(1600, 256), nn.Linear(256, 10)
    return model


def tensors_of_all_kinds():
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    shared = torch.randn(10)
    kinds = [
        ("plain", base), ("transposed", base.permute(2, 0, 1)), ("sliced", base[:, 1:, ::2]), ("column", base[0, :, 2]),
        ("scalar", torch.tensor(3.5)), ("empty", torch.zeros(0)), ("no_rows", torch.zeros(0, 3)), ("one", torch.ones(1, 1, 1)),
        ("shared.all", shared), ("shared.half", shared[5:]), ("parameter", torch.nn.Parameter(torch.randn(3))),
        ("channels_last", torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)), ("complex", torch.randn(3, dtype=torch.complex64)),
        ("expanded", torch.randn(1, 3).expand(4, 3)), ("repeated", torch.tensor(2.5).expand(3, 3)),
    ]
    if hasattr(torch._utils, "get_tensor_metadata"):  # PyTorch 1.13 drops the flags of these views
        kinds += [("conjugated", torch.randn(3, dtype=torch.complex64).conj()),
                  ("negated", torch.randn(3, dtype=torch.complex64).conj().imag)]
    attributes = torch.randn(2)
    attributes.tag = 1
    kinds.append(("attributes", attributes))
    for dtype in ("float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"):
        kinds.append((dtype, torch.arange(7).to(getattr(torch, dtype))))
    return collections.OrderedDict(kinds)


def write(folder):
    torch.manual_seed(5)
    kinds = tensors_of_all_kinds()
    files = {"kinds": kinds, "plain_dict": dict(kinds), "none": {}}
    for name, make in (("convnet", convnet), ("sequential", sequential), ("attributes", attributes)):
        torch.manual_seed(0)
        files[name] = make().state_dict()
    torch.manual_seed(0)
    files["parallel"] = torch.nn.DataParallel(attributes()).state_dict()
    expected = {}
    for name, state_dict in files.items():
        torch.save(state_dict, f"{folder}/{name}.pt")
        expected[name] = [describe(key, value) for key, value in state_dict.items()]
    torch.save(kinds, f"{folder}/protocol4.pt", pickle_protocol=4)
    expected["protocol4"] = expected["kinds"]
    torch.save({"epoch": 3, "model_state_dict": kinds, "loss": 0.5}, f"{folder}/wrapped.pt")
    others = {"size": torch.Size([1, 2]), "dtype": torch.float32, "device": torch.device("cpu"), "large": 10 ** 30, "set": {1},
              "bytes": b"x", "complex": 1j, "counter": collections.Counter([1]), "weights": kinds}
    torch.save(others, f"{folder}/others.pt")
    torch.save(kinds, f"{folder}/legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(kinds, f"{folder}/legacy4.pt", _use_new_zipfile_serialization=False, pickle_protocol=4)
    for name in ("wrapped", "others", "legacy", "legacy4"):
        expected[name] = expected["kinds"]
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 1)), f"{folder}/script.pt")
    torch.save({"w": torch.eye(2).to_sparse()}, f"{folder}/sparse.pt")
    torch.save(convnet(), f"{folder}/module.pt")
    optimizer = torch.optim.Adam(attributes().parameters())
    torch.save(optimizer.state_dict(), f"{folder}/optimizer.pt")
    for descr in ("<f4", "<f2", "<f8", "<i8", "<i4", "<i2", "|i1", "|u1", "<u2", "<u4", "<u8", "|b1", "<c8"):
        numpy.save(f"{folder}/{descr[1:]}.npy", numpy.arange(6).astype(descr).reshape(2, 3))
    for name, array in (("scalar", numpy.float32(2)), ("empty", numpy.zeros((0, 3), numpy.float32))):
        numpy.save(f"{folder}/{name}.npy", array)
    numpy.save(f"{folder}/fortran.npy", numpy.asfortranarray(numpy.arange(6, dtype=numpy.float32).reshape(2, 3)))
    numpy.save(f"{folder}/objects.npy", numpy.array([{}, None], dtype=object))
    numpy.save(f"{folder}/big_endian.npy", numpy.arange(6).astype(">f4"))
    with open(f"{folder}/expected.json", "w") as file:
        json.dump(expected, file)


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}[entry["dtype"]]
        array = numpy.frombuffer(data[begin:end], dtype=dtype).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(array.copy())
    return tensors


def logits_of(state_dict, pixels):
    model = convnet()
    model.load_state_dict(state_dict, strict=True)
    images = (pixels.reshape(-1, 1, 28, 28).float() / 255 - 0.5) / 0.5
    with torch.no_grad():
        return model.fc_layers(model.conv_layers(images).flatten(1))


def compare(weights, idx, logits_path):
    with open(idx, "rb") as file:
        pixels = torch.from_numpy(numpy.frombuffer(file.read()[16:], dtype=numpy.uint8).copy())
    state_dict = torch.load(weights, weights_only=True) if weights.endswith(".pt") else read_safetensors(weights)
    theirs, ours = logits_of(state_dict, pixels), torch.from_numpy(numpy.load(logits_path))
    assert theirs.shape == ours.shape, (theirs.shape, ours.shape)
    print(json.dumps({"images": len(ours), "difference": (theirs - ours).abs().max().item()}))


def state_dicts(folder):
    states = {}
    for name, make in (("convnet", convnet), ("sequential", sequential), ("attributes", attributes)):
        torch.manual_seed(3)
        states[name] = make().state_dict()
    states["parallel"] = {f"module.{key}": value for key, value in states["attributes"].items()}
    states["compiled"] = {f"_orig_mod.{key}": value for key, value in states["convnet"].items()}
    for name, state_dict in states.items():
        torch.save(state_dict, f"{folder}/{name}.pt")


def load_weights(path):
    return torch.load(path, weights_only=True) if path.endswith(".pt") else read_safetensors(path)


def read_idx(path):
    with open(path, "rb") as file:
        data = file.read()
    return torch.from_numpy(numpy.frombuffer(data, dtype=numpy.uint8, offset=4 + 4 * data[3]).copy())


def optimizer_steps(kind, weights, optimizer_path, folder, out, steps, frozen=None):
    model = convnet()
    model.load_state_dict(load_weights(weights), strict=True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(frozen is None or not name.startswith(frozen))
    trained = [p for p in model.parameters() if p.requires_grad]
    # PyTorch 1.13 reads no floats with weights_only, not even those of its own optimizers.
    saved = torch.load(optimizer_path, weights_only=not torch.__version__.startswith("1."))
    groups = [trained]
    if len(saved["param_groups"]) == 2:
        groups = [[p for p in trained if p.dim() > 1], [p for p in trained if p.dim() == 1]]
    # Other numbers than the file's, which come with load_state_dict.
    optimizer = getattr(torch.optim, kind)([{"params": group} for group in groups], lr=0.5)
    optimizer.load_state_dict(saved)
    images = (read_idx(f"{folder}/train-images-idx3-ubyte").reshape(-1, 1, 28, 28).float() / 255 - 0.5) / 0.5
    labels = read_idx(f"{folder}/train-labels-idx1-ubyte").long()
    for step in range(1, int(steps) + 1):
        optimizer.zero_grad()
        scores = model.fc_layers(model.conv_layers(images).flatten(1))
        torch.nn.functional.cross_entropy(scores, labels).backward()
        optimizer.step()
        torch.save(model.state_dict(), f"{out}-{step}.pt")
        torch.save(optimizer.state_dict(), f"{out}-{step}-optimizer.pt")


def distance(a, b):
    a, b = load_weights(a), load_weights(b)
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    print(json.dumps(max((a[name] - b[name]).abs().max().item() for name in a)))


def about(path):
    assert len(torch.load(path, weights_only=True)) > 0
    with zipfile.ZipFile(path) as archive:
        print(archive.read("archive/extra/gradring.json").decode())


def logits(pt, safetensors, golden_path):
    golden = read_safetensors(golden_path)
    differences = []
    for state_dict in (torch.load(pt, weights_only=True), read_safetensors(safetensors)):
        result = logits_of(state_dict, golden["images_u8"][:32])
        differences.append((result - golden["logits"].reshape(32, 10)).abs().max().item())
    print(json.dumps(differences))


if __name__ == "__main__":
    if sys.argv[1] == "describe":
        for key, value in torch.load(sys.argv[2], weights_only=True).items():
            print(json.dumps(describe(key, value)))
    else:
        {"write": write, "logits": logits, "compare": compare, "state_dicts": state_dicts,
         "optimizer_steps": optimizer_steps, "distance": distance, "about": about}[sys.argv[1]](*sys.argv[2:])
