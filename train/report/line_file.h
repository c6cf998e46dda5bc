// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gradring::train {

/// A text file that only grows, line by line; a reader never sees half a line that stays.
///
/// Errors    EnvironmentError with path and reason. A line that did not fit on the disk is taken back.
class LineFile {
 public:
  /// Adds to the file, or makes it.
  explicit LineFile(const std::filesystem::path& path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void append(std::string_view line);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  long long size_ = 0;  // of the whole lines
};

/// Where write_file_whole writes before that; a process that is killed may leave it.
std::filesystem::path draft_of(const std::filesystem::path& path);

/// Writes a file that is either there whole or not at all: aside, fsynced, renamed.
///
/// Errors    EnvironmentError with path and reason; nothing is left behind.
void write_file_whole(const std::filesystem::path& path, std::string_view text);

/// Writes a file that the user named. A device or a pipe is written to; a link stays, and what it leads to is written whole.
///
/// Errors    EnvironmentError with path and reason.
void write_named_file(const std::filesystem::path& path, std::string_view text);

}  // namespace gradring::train
