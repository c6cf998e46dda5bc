// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/trainer/trainer.h"

namespace gradring::train {

/// The newest valid checkpoint in a folder of checkpoints, if there is one; what was passed over, and why, becomes
/// remarks. A run may save and remove checkpoints at the same time.
///
/// Errors    FileError if one could not be read: whether it is valid is not known.
std::optional<ResumePoint> newest_checkpoint(FileSystem& files, const std::filesystem::path& checkpoints,
                                             std::vector<std::string>& remarks);

/// The folder of checkpoints that a person means by a run directory, or by the folder itself.
std::filesystem::path checkpoints_in(FileSystem& files, const std::filesystem::path& path);

bool is_checkpoint(FileSystem& files, const std::filesystem::path& folder);

/// What a link such as `latest` names now: a run may change the link while the files behind it are read. Another path
/// is returned as it is.
std::filesystem::path followed(FileSystem& files, const std::filesystem::path& path);

/// What a person names by `option`: a checkpoint, or a run directory or folder of checkpoints, whose newest valid one
/// is meant.
///
/// Errors    CheckpointError if it is not there, holds none, or is damaged; FileError if it could not be read.
ResumePoint named_checkpoint(FileSystem& files, const std::filesystem::path& path, std::string_view option,
                             std::vector<std::string>& remarks);

/// Tensors that a person named, and all that is known of them.
struct NamedTensors {
  Checkpoint contents;         ///< of a file: its tensors, as the model
  std::filesystem::path from;  ///< the checkpoint or the file
  bool is_file = false;
  std::vector<std::string> remarks;  ///< what was passed over, and why
};

/// The same, or a file of tensors in any format that read_tensor_file knows.
NamedTensors named_tensors(FileSystem& files, const std::filesystem::path& path, std::string_view option);

/// Puts the averaged weights (--ema) in the place of the weights, under their names.
///
/// Errors    CheckpointError if there are none.
void take_averaged(NamedTensors& named);

}  // namespace gradring::train
