// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "data/fetch/known_file.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::data {

/// The part of a file that is here already: <name>.part beside where it will lie. It stays when this goes, so that a later
/// run goes on where this one broke off.
///
/// Errors    DiskError if it cannot be written; FetchError if another process has it open.
class PartFile {
 public:
  /// Opens the part of `target`, or makes it, with the folders above.
  explicit PartFile(std::filesystem::path target);

  std::uint64_t size() const { return size_; }
  void append(std::span<const std::byte> bytes);
  /// Begins anew, with nothing.
  void clear();
  FileCheck check(const KnownFile& expected) const { return check_file(path_, expected); }
  /// Makes it the file itself, in one step that survives a power cut. The last call.
  void publish();
  /// Removes it. The last call.
  void remove();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  UniqueFd fd_;  // locked
  std::uint64_t size_ = 0;
};

}  // namespace gradring::data
