// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// Owns a JSON value, for headers that carry one: unlike nlohmann/json itself, it costs those who include it nothing to
/// compile. Copies are deep. A moved-from object may only be assigned to or destroyed.
class JsonValue {
 public:
  JsonValue();                              ///< an empty object
  JsonValue(nlohmann::ordered_json value);  // NOLINT(google-explicit-constructor)
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(JsonValue other) noexcept;
  ~JsonValue();

  /// Errors    std::exception if it is not valid JSON.
  static JsonValue parse(std::string_view text);
  std::string text() const;

  nlohmann::ordered_json& operator*() { return *value_; }
  const nlohmann::ordered_json& operator*() const { return *value_; }
  nlohmann::ordered_json* operator->() { return value_.get(); }
  const nlohmann::ordered_json* operator->() const { return value_.get(); }

  bool operator==(const JsonValue& other) const;

 private:
  std::unique_ptr<nlohmann::ordered_json> value_;
};

/// Everything that a training needs to resume. `model` has PyTorch's names and order. Nothing in it depends on the
/// number of ranks.
struct Checkpoint {
  std::int64_t step = 0;
  std::vector<TensorRecord> model;  ///< the weights
  std::vector<TensorRecord> state;  ///< all other tensors: moments, averages, ...
  JsonValue about;                  ///< an object: counters, versions, hashes
  std::optional<double> score;      ///< higher is better; selects the best checkpoint
};

/// The files in the folder of a checkpoint.
constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kStateFile = "state.safetensors";
constexpr const char* kMetaFile = "meta.json";

/// Writes the three files into an empty folder, and syncs them and the folder.
///
/// Errors    FileError, and some of the files may exist; InvalidArgument as plan_safetensors, before anything is
///           written.
void write_checkpoint(FileSystem& files, const std::filesystem::path& folder, const Checkpoint& checkpoint);

/// Reads a folder and verifies every byte.
///
/// Errors    CheckpointError with the file, and the tensor, that is corrupt or missing; NewerFormatError; FileError if
///           a file could not be read: it may be valid.
Checkpoint read_checkpoint(FileSystem& files, const std::filesystem::path& folder);

/// What is wrong with a folder, one line each; empty if it is valid. Detects any flipped bit.
///
/// Errors    FileError if a file could not be read.
/// Cost      reads and hashes everything; holds one tensor at a time.
std::vector<std::string> verify_checkpoint(FileSystem& files, const std::filesystem::path& folder);

/// The SHA-256 of `bytes` in hexadecimal.
std::string sha256_hex(std::span<const std::byte> bytes);

/// The SHA-256 of each part of a safetensors file, in hexadecimal. Together they cover every byte.
struct FileHashes {
  std::string head;  ///< everything before the first tensor
  std::map<std::string, std::string> tensors;

  bool operator==(const FileHashes&) const = default;
};

/// The content of meta.json.
struct CheckpointMeta {
  std::int64_t step = 0;
  std::optional<double> score;
  JsonValue about;
  FileHashes model;
  FileHashes state;
};

/// Reads meta.json in the folder of a checkpoint.
///
/// Errors    CheckpointError: missing, above 2 MiB, corrupt, of another step than the folder's name says;
///           NewerFormatError; FileError if it could not be read.
CheckpointMeta read_meta(FileSystem& files, const std::filesystem::path& folder);

}  // namespace gradring::train
