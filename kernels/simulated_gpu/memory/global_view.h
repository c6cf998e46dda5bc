// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/simulated_gpu/memory/global_memory.h"

namespace gradring::simulated_gpu {

/// Global memory as one host thread of a launch sees it: it remembers the blocks that it used last.
class GlobalView {
 public:
  GlobalView(GlobalMemory& memory, int device) : memory_(memory), device_(device) {}

  /// The block that holds all of [address, address + bytes), and that the device reaches: its own, or pinned memory; null
  /// without such a block. There is no peer access.
  const GlobalMemory::Block* find(std::uint64_t address, std::size_t bytes);
  GlobalMemory& memory() { return memory_; }

 private:
  GlobalMemory& memory_;
  int device_;
  std::uint64_t generation_ = 0;
  std::array<const GlobalMemory::Block*, 4> recent_{};
};

inline const GlobalMemory::Block* GlobalView::find(std::uint64_t address, std::size_t bytes) {
  if (const std::uint64_t generation = memory_.generation(); generation != generation_) [[unlikely]] {
    generation_ = generation;
    recent_.fill(nullptr);
  }
  for (const GlobalMemory::Block* block : recent_)
    if (block != nullptr && block->holds(address, bytes)) return block;
  const GlobalMemory::Block* const found = memory_.find(address, bytes);
  if (found != nullptr && !found->is_pinned_host && found->device != device_) return nullptr;
  if (found != nullptr) {
    for (std::size_t i = recent_.size() - 1; i > 0; --i) recent_[i] = recent_[i - 1];
    recent_[0] = found;
  }
  return found;
}

}  // namespace gradring::simulated_gpu
