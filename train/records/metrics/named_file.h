// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "kernels/base/directory.h"

namespace gradring::train {

/// A file that the user named, written in parts: a device or a pipe directly, anything else atomically, through a new
/// temporary file beside it, with the permissions of the file that it replaces. Follows links. The folder stays open in
/// the meantime, so that the file gets its name there and in no other folder that has its path later. A terminal gets
/// escapes in the place of characters that it would obey, as by print_data().
///
/// Threads   one.
/// Errors    EnvironmentError with path and reason.
/// Cost      no memory for what was written.
class NamedFile {
 public:
  explicit NamedFile(const FileAt& file);
  /// Removes the temporary file, unless finish() has returned.
  ~NamedFile();
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  void write(std::string_view part);
  /// Syncs the temporary file and renames it. Without this call the file stays as it was.
  void finish();

 private:
  FileAt in_folder(const std::string& name) const { return {folder_.get(), name, path_.parent_path() / name}; }
  UniqueFd create_beside();

  std::filesystem::path path_;
  UniqueFd folder_;
  std::string temporary_;  // its name in the folder; empty: written directly, or finished
  UniqueFd fd_;
};

/// Writes a NamedFile as a whole.
void write_named_file(const FileAt& file, std::string_view text);

}  // namespace gradring::train
