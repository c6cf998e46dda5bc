// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// Reads the tensors of a state_dict that torch.save wrote (1.6 or later: a zip archive), in its order, each made dense.
/// Nothing of the file is executed. A dictionary that holds the state_dict as "state_dict", "model_state_dict" or "model"
/// is read too.
///
/// Errors    CheckpointError, naming the file, what was found and what to do: ZipReader's and read_pickle's; another byte
///           order; a value that is no tensor; a tensor that reaches beyond its storage, or repeats its elements.
/// Cost      the tensors, at most four times as large as the file, and their storages.
/// Source    PyTorch's torch/serialization.py and caffe2/serialize/inline_container.h.
/// Example   tests/train/checkpoint/pt_test.cpp
std::vector<TensorRecord> read_pt(const InputFile& file, const std::filesystem::path& path);

/// Writes a state_dict that torch.load(path, weights_only=True) takes: an OrderedDict of dense tensors in the given order,
/// each with a storage of its own. On the disk when this returns; the same tensors make the same bytes.
///
/// Errors    InvalidArgument if PyTorch has no such type, a name stands twice, or the bytes do not fit the shape;
///           FileError, and the file may be there in part.
void write_pt(FileSystem& files, const std::filesystem::path& path, std::span<const TensorRecord> tensors);

}  // namespace gradring::train
