// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gradring::tests {

using Bytes = std::vector<std::uint8_t>;

/// An empty folder of this test's own, removed at its end with all that lies in it.
class TempFolder {
 public:
  explicit TempFolder(const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file (and the folders above it); returns its path.
  std::filesystem::path write(const std::filesystem::path& name, std::span<const std::uint8_t> bytes) const;

 private:
  std::filesystem::path path_;
};

}  // namespace gradring::tests
