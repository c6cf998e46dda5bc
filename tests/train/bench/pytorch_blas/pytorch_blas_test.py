# SPDX-License-Identifier: Apache-2.0
"""What pytorch_training.py calls the BLAS of torch: pytorch_blas_test.py PYTORCH_TRAINING.PY FOLDER linked|whole"""
import ctypes
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

script, folder, kind = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
torch = MagicMock()
torch.__file__ = str(folder / kind / "__init__.py")
for name in ("torch", "torch.distributed", "torch.nn", "torch.utils", "torch.utils.data"):
    sys.modules[name] = torch
torch.nn.Module = object
spec = importlib.util.spec_from_file_location("pytorch_training", script)
training = importlib.util.module_from_spec(spec)
spec.loader.exec_module(training)
ctypes.CDLL(str(folder / "libcublas.so"), mode=ctypes.RTLD_GLOBAL)  # as CUDA's, where torch brings it along


def expect(built, expected):
    torch.__config__ = SimpleNamespace(show=lambda: built)
    found = training.blas()
    assert found == expected, f"found {found}, expected {expected}"


MKL = "  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for Intel(R) 64 architecture\n"
OLD_MKL = "  - Intel(R) Math Kernel Library Version 2020.0.0 Product Build 20191122 for Intel(R) 64 architecture\n"
if kind == "linked":
    expect("BLAS_INFO=generic", str((folder / "libblas.so").resolve()))
    expect(MKL + "BLAS_INFO=mkl", str((folder / "libblas.so").resolve()))
else:
    expect(MKL + "  - Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release", "MKL 2024.2")
    expect(OLD_MKL, "MKL 2020.0.0")
    expect("  - Build settings: BLAS_INFO=open, BUILD_TYPE=Release", "open, within torch")
    expect("", "unknown, within torch")
