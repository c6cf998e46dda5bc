// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "kernels/base/file.h"
#include "train/records/metrics/metrics_lines.h"

namespace gradring::train {

/// Reads the lines of a text file that another process appends to, truncates (a rollback) or replaces, also on a
/// network file system. A line is given out when it is complete; one of more than `most_line_bytes` is left out.
///
/// Threads   one.
class FollowedFile {
 public:
  explicit FollowedFile(std::filesystem::path path, std::size_t most_line_bytes = kMostLineBytes)
      : path_(std::move(path)), most_line_bytes_(most_line_bytes) {}

  enum class Change : std::uint8_t {
    none,
    more,     ///< lines were appended
    changed,  ///< lines that were given out are gone: forget them, poll() begins at the first
  };

  /// Calls `use` with each complete line that is new. After `changed` nothing was given out yet.
  ///
  /// Errors    none: a file that is missing or cannot be read has no lines.
  /// Cost      a few system calls if nothing is new; memory for one line of at most `most_line_bytes`. Of a line that is
  ///           left out, kMostSkippedBytes are read at most.
  Change poll(const std::function<void(std::string_view line)>& use);

  /// Since 1970, when the file was last written; 0: it does not exist.
  double written_at() const { return written_at_; }
  /// Whether the last line was not complete.
  bool has_incomplete_line() const { return !rest_.empty() || is_in_long_line_; }

 private:
  bool was_rewritten(const UniqueFd& file) const;
  void forget();
  void take_lines(std::size_t searched, const std::function<void(std::string_view line)>& use);

  std::filesystem::path path_;
  std::size_t most_line_bytes_;
  ino_t inode_ = 0;
  off_t offset_ = 0;              // behind the complete lines, or within one that is left out
  std::string before_;            // some bytes before the offset
  std::string rest_;              // behind it, as it was at the last poll
  bool is_in_long_line_ = false;  // at the offset
  double written_at_ = 0;
};

}  // namespace gradring::train
