// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "kernels/base/error.h"

namespace gradring::train {

/// A file or folder is not a valid checkpoint, or not one of this model. The message is "PATH FOUND; ADVICE", where
/// FOUND begins with a verb: "runs/a/checkpoints/step-40/meta.json is missing; restore it, or choose another". Exit
/// code 4.
class CheckpointError : public Error, public ExitsWith<kBadData> {
 public:
  /// `path` is the invalid file or folder.
  CheckpointError(const std::filesystem::path& path, std::string_view found, std::string_view advice)
      : Error(path.string() + " " + std::string(found) + "; " + std::string(advice)) {}
};

/// A checkpoint was written by a newer version of gradring: it is not damaged, but this version cannot read it. Exit
/// code 4.
class NewerFormatError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// A file needs more memory than is available. That says nothing about its content, so no older checkpoint is used; but
/// its header may lie. The message is "PATH needs 300 MiB of memory, but 100 MiB are available; ...". Exit code 4.
class MemoryError : public Error, public ExitsWith<kBadData> {
 public:
  using Error::Error;
};

/// A system call on a file failed, which says nothing about the file's content. The message is "cannot write PATH: No
/// space left on device". Exit code 3.
class FileError : public Error, public ExitsWith<kEnvironment> {
 public:
  FileError(std::string_view operation, const std::filesystem::path& path, int code)
      : Error("cannot " + std::string(operation) + " " + path.string() + ": " + std::generic_category().message(code)),
        code_(code) {}

  /// errno: ENOSPC, EIO, ...
  int code() const { return code_; }

 private:
  int code_;
};

/// The run directory was removed, or belongs to another run now: nothing more can be saved. Exit code 3.
class LostDirectoryError : public Error, public ExitsWith<kEnvironment> {
 public:
  using Error::Error;
};

/// Checkpoints could not be saved, for example because the disk is full. Exit code 3.
class SaveError : public Error, public ExitsWith<kEnvironment> {
 public:
  using Error::Error;
};

}  // namespace gradring::train
