// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "kernels/runtime/error.h"

namespace gradring::train {

/// What was read is not a valid checkpoint, or not one of this model. The message is "path: found; advice". Exit code 4.
class CheckpointError : public Error {
 public:
  CheckpointError(std::filesystem::path path, std::string_view found, std::string_view advice)
      : Error(path.string() + ": " + std::string(found) + "; " + std::string(advice)), path_(std::move(path)) {}

  /// The file or folder that is wrong.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The system refused a call on a file, which says nothing about what the file holds. The message is "cannot write PATH: No
/// space left on device". Exit code 3.
class FileError : public Error {
 public:
  FileError(std::string_view operation, std::filesystem::path path, int code)
      : Error("cannot " + std::string(operation) + " " + path.string() + ": " + std::generic_category().message(code)),
        path_(std::move(path)),
        code_(code) {}

  const std::filesystem::path& path() const { return path_; }
  /// errno: ENOSPC, EIO, ...
  int code() const { return code_; }

 private:
  std::filesystem::path path_;
  int code_;
};

}  // namespace gradring::train
