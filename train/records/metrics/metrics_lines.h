// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/file.h"

namespace gradring::train {

/// A line of a metrics.jsonl that has more bytes is no event.
inline constexpr std::size_t kMostLineBytes = std::size_t{16} << 20;

/// A file with a longer line is not read further: a sparse one may have TiB.
inline constexpr std::uint64_t kMostSkippedBytes = std::uint64_t{256} << 20;

/// The lines of an open file, from where it is read next.
class FileLines {
 public:
  /// `file` must outlive it.
  explicit FileLines(const UniqueFd& file) : file_(file) {}
  FileLines(const FileLines&) = delete;
  FileLines& operator=(const FileLines&) = delete;

  /// Reads the next line, but not much more than kMostSkippedBytes; false at the end of the file or after an error.
  bool next();
  /// The line without its line break; of a longer one the first kMostLineBytes.
  const std::string& line() const { return line_; }
  /// The size of the line in the file, without its line break and with it.
  std::uint64_t text_bytes() const { return bytes_ - (is_complete_ ? 1 : 0); }
  std::uint64_t bytes() const { return bytes_; }
  /// Whether a line break ends it.
  bool is_complete() const { return is_complete_; }
  bool has_failed() const { return has_failed_; }
  /// Goes back to the first line.
  void rewind();

 private:
  bool fill();

  const UniqueFd& file_;
  std::array<char, 1 << 16> part_{};
  std::string_view rest_;  // of the part: it is not used yet
  std::string line_;
  std::uint64_t bytes_ = 0;
  bool is_complete_ = false;
  bool is_at_end_ = false;
  bool has_failed_ = false;
};

/// The lines of a metrics.jsonl, also of a run that is running or was killed.
///
/// Errors    EnvironmentError with path and reason if the file cannot be read, or has a line of more than 256 MiB.
/// Cost      memory for one line of at most kMostLineBytes.
class MetricsLines {
 public:
  explicit MetricsLines(std::filesystem::path path);

  /// The next line without its line break, valid until the next call; of a longer one the first kMostLineBytes. Nothing
  /// at the end of the file.
  std::optional<std::string_view> next();
  /// How many lines next() has returned.
  std::uint64_t count() const { return count_; }
  /// Goes back to the first line.
  void rewind();

  /// Adds a warning that the last line is not an event, and why, unless it is too long or incomplete.
  void ignore(std::string_view problem = {});
  /// One for each ignored line, or for the first ten and one with the number of the others.
  std::vector<std::string> warnings() const;

 private:
  std::filesystem::path path_;
  UniqueFd file_;
  FileLines lines_{file_};
  std::uint64_t count_ = 0;
  std::vector<std::string> warnings_;
  std::uint64_t more_ignored_ = 0;
};

}  // namespace gradring::train
