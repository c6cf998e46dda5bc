// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace gradring::simulated_gpu {

/// A set of sectors of global memory: 32 bytes each.
///
/// Threads   one.
class TouchedSectors {
 public:
  static constexpr unsigned kSectorBytes = 32;

  /// The sectors with these bytes, of which there is at least one.
  void add(std::uint64_t address, std::size_t bytes);
  void add(const TouchedSectors& other);
  std::uint64_t count() const;

 private:
  static constexpr unsigned kWordBits = 64, kPageWords = 16;
  using Page = std::array<std::uint64_t, kPageWords>;  // a bit for each sector

  std::unordered_map<std::uint64_t, Page> pages_;
};

}  // namespace gradring::simulated_gpu
