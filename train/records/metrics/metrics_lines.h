// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train {

/// A line of a metrics.jsonl that has more bytes is no event.
inline constexpr std::size_t kMostLineBytes = std::size_t{16} << 20;

/// A file with a longer line is not read further: a sparse one may have TiB.
inline constexpr std::uint64_t kMostSkippedBytes = std::uint64_t{256} << 20;

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
  std::ifstream file_;
  std::array<char, 1 << 16> part_{};
  std::string line_;
  std::uint64_t count_ = 0;
  bool is_too_long_ = false;  // the last line
  std::vector<std::string> warnings_;
  std::uint64_t more_ignored_ = 0;
};

}  // namespace gradring::train
