// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// Reads the tensors of a file, whatever its name. Its first bytes tell the format: PyTorch's .pt, NumPy's .npy (one
/// tensor, named as the file without its extension), or safetensors.
///
/// Errors    CheckpointError and MemoryError, as the format's reader. It names other formats that are often given instead,
///           such as a bare pickle.
std::vector<TensorRecord> read_tensor_file(FileSystem& files, const std::filesystem::path& path);

/// Reads NumPy's .npy, versions 1 to 3: one array of plain numbers, in C or Fortran order, little- or big-endian. The
/// record has no name.
///
///   | \x93NUMPY | major, minor | 2 or 4 bytes: N | N bytes: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),
///   } | data |
///
/// Errors    CheckpointError, naming the file, what was found and what to do: another magic or version, a header above
///           64 KiB or of any other form, Python objects, a size that contradicts the shape. Nothing in the file is
///           executed.
/// Cost      allocates memory for the data after the file's size was compared with the shape.
/// Source    NumPy's format description (numpy.lib.format, NEP 1).
/// Example   tests/train/records/checkpoint/npy_test.cpp
TensorRecord read_npy(const InputFile& file, const std::filesystem::path& path);

/// What precedes the bytes of a tensor in a file of version 1.0, as numpy.save writes it.
///
/// Errors    InvalidArgument if NumPy lacks the type.
std::string npy_head(const TensorInfo& tensor);

/// Writes and syncs a new file of version 1.0.
///
/// Errors    InvalidArgument if NumPy lacks the type, or the bytes contradict the shape; FileError, and part of the
///           file may exist.
void write_npy(FileSystem& files, const std::filesystem::path& path, const TensorRecord& tensor);

/// Reads the tensors of a state_dict that torch.save wrote, as a zip archive or in the legacy format (before PyTorch
/// 1.6), in its order, each made dense and little-endian. Nothing in the file is executed. The state_dict may be a value
/// of a dictionary: "state_dict", "model_state_dict", "model", or the only one.
///
/// Errors    CheckpointError, naming the file, what was found and what to do: those of open_pt_records; several
///           state_dicts; a value that is not a tensor, or a sparse or quantized one; a tensor that reaches beyond its
///           storage; more tensors than four times the file and 32 MiB. MemoryError.
/// Cost      the tensors and their storages.
/// Source    PyTorch's torch/serialization.py and caffe2/serialize/inline_container.h.
/// Example   tests/train/records/checkpoint/pt_test.cpp
std::vector<TensorRecord> read_pt(const InputFile& file, const std::filesystem::path& path);

/// Writes and syncs a state_dict for torch.load(path, weights_only=True): an OrderedDict of dense tensors in the given
/// order, each with its own storage. The same tensors give the same bytes. `about`: a text beside the state_dict, the
/// record extra/gradring.json, which torch.load ignores; empty: no such record.
///
/// Errors    InvalidArgument if PyTorch lacks a type, two tensors have one name, or the bytes contradict the shape;
///           FileError, and part of the file may exist.
void write_pt(FileSystem& files, const std::filesystem::path& path, std::span<const TensorRecord> tensors,
              std::string_view about = {});

}  // namespace gradring::train
