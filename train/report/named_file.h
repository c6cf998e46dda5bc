// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "kernels/runtime/file.h"

namespace gradring::train {

/// A file that the user named, written in parts: a device or a pipe directly, anything else atomically, through a new
/// temporary file beside it, with the permissions of the file that it replaces. Follows links.
///
/// Threads   one.
/// Errors    EnvironmentError with path and reason.
/// Cost      no memory for what was written.
class NamedFile {
 public:
  explicit NamedFile(const std::filesystem::path& path);
  /// Removes the temporary file, unless finish() has returned.
  ~NamedFile();
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  void write(std::string_view part);
  /// Syncs the temporary file and renames it. Without this call the file stays as it was.
  void finish();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: written directly, or finished
  UniqueFd fd_;
};

/// Writes a NamedFile as a whole.
void write_named_file(const std::filesystem::path& path, std::string_view text);

}  // namespace gradring::train
