// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// Reads the tensors of a file in the format that its first bytes tell, whatever its name is: PyTorch's .pt, NumPy's .npy
/// (one tensor, named as the file without its extension), or safetensors.
///
/// Errors    CheckpointError, as the format's reader; a bare pickle, such as torch.save wrote before PyTorch 1.6, is named as
///           what it is.
std::vector<TensorRecord> read_tensor_file(FileSystem& files, const std::filesystem::path& path);

}  // namespace gradring::train
