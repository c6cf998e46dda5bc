// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/safetensors.h"

namespace gradring::train {

/// SHA-256 of each part of a safetensors file, in hexadecimal: together they cover every byte.
struct FileSums {
  std::string head;  ///< of all before the first tensor
  std::map<std::string, std::string> tensors;
};

/// The sums of a file that write_safetensors would write.
FileSums sums_of(const SafetensorsPlan& plan);
std::string sum_of(std::span<const std::byte> bytes);

/// What meta.json says.
struct CheckpointMeta {
  std::int64_t step = 0;
  std::optional<double> score;
  nlohmann::ordered_json about;
  FileSums model;
  FileSums state;
};

/// The text of meta.json. Its last value is the SHA-256 of all that stands before it: `head -c -68 meta.json | sha256sum`.
///
/// Errors    InvalidArgument if `about` holds text that is not UTF-8, or the file would be above 2 MiB.
std::string meta_text(const CheckpointMeta& meta);

/// The meta.json in a checkpoint's folder.
///
/// Errors    CheckpointError: missing, above 2 MiB, changed since it was written, of a newer format, of another step than the
///           one in the folder's name; FileError if it could not be read.
CheckpointMeta read_meta(FileSystem& files, const std::filesystem::path& folder);

}  // namespace gradring::train
