// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/touched_sectors.h"

#include <bit>

namespace gradring::simulated_gpu {

void TouchedSectors::add(std::uint64_t address, std::size_t bytes) {
  const std::uint64_t last = (address + bytes - 1) / kSectorBytes;
  Page* page = nullptr;
  for (std::uint64_t sector = address / kSectorBytes; sector <= last; ++sector) {
    if (page == nullptr || sector % (kWordBits * kPageWords) == 0) page = &pages_[sector / (kWordBits * kPageWords)];
    (*page)[sector / kWordBits % kPageWords] |= std::uint64_t{1} << sector % kWordBits;
  }
}

void TouchedSectors::add(const TouchedSectors& other) {
  for (const auto& [number, page] : other.pages_) {
    Page& own = pages_[number];
    for (unsigned word = 0; word < kPageWords; ++word) own[word] |= page[word];
  }
}

std::uint64_t TouchedSectors::count() const {
  std::uint64_t sectors = 0;
  for (const auto& [number, page] : pages_)
    for (const std::uint64_t word : page) sectors += static_cast<unsigned>(std::popcount(word));
  return sectors;
}

}  // namespace gradring::simulated_gpu
