// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// All that a training needs to go on as if nothing had been. Names and orders of `model` are PyTorch's, and nothing tells
/// how many ranks there were.
struct Checkpoint {
  std::int64_t step = 0;
  std::vector<TensorRecord> model;                                  ///< what is exported: the weights
  std::vector<TensorRecord> state;                                  ///< all other tensors: moments, averages, ...
  nlohmann::ordered_json about = nlohmann::ordered_json::object();  ///< what is no tensor: counters, versions, hashes
  std::optional<double> score;  ///< the higher the better: which checkpoints are the best
};

/// The files of a checkpoint's folder.
constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kStateFile = "state.safetensors";
constexpr const char* kMetaFile = "meta.json";

/// Writes the three files into an empty folder; all lie on the disk when this returns, and the folder's entries too.
///
/// Errors    FileError, and some of the files may be there; InvalidArgument as plan_safetensors, before anything is written.
void write_checkpoint(FileSystem& files, const std::filesystem::path& folder, const Checkpoint& checkpoint);

/// Reads a folder and compares every byte with what was written.
///
/// Errors    CheckpointError with the file, and the tensor, that is not as it was saved, is missing, or of a newer format;
///           FileError if a file could not be read: then it may be valid.
Checkpoint read_checkpoint(FileSystem& files, const std::filesystem::path& folder);

/// What is wrong with a folder, one line each; nothing if all is as it was saved. A flipped bit is found wherever it is.
///
/// Errors    FileError if a file could not be read.
/// Cost      reads and hashes all; takes memory for one tensor at a time.
std::vector<std::string> verify_checkpoint(FileSystem& files, const std::filesystem::path& folder);

}  // namespace gradring::train
