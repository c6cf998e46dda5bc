// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "train/checkpoint/file_system.h"

namespace gradring::train {

/// Bytes in memory, read as a file. Owns nothing.
class MemoryFile final : public InputFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= bytes_.size()) return 0;
    const auto rest = bytes_.subspan(offset, std::min<std::size_t>(out.size(), bytes_.size() - offset));
    std::copy(rest.begin(), rest.end(), out.begin());
    return rest.size();
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace gradring::train
