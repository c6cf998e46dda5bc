// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/mapped/control_block.h"

#include <new>

namespace gradring::comm {
namespace {

/// "gradring", and a version that changes with the layout.
constexpr std::uint64_t kMagic = 0x676e697264617267ull + 4;

}  // namespace

std::size_t ControlBlock::bytes_for(int world_size) {
  return sizeof(Preamble) + static_cast<std::size_t>(world_size) * sizeof(Pair);
}

ControlBlock ControlBlock::create(std::byte* memory, int world_size) {
  auto* preamble = new (memory) Preamble;
  for (int peer = 0; peer < world_size; ++peer)
    new (memory + sizeof(Preamble) + static_cast<std::size_t>(peer) * sizeof(Pair)) Pair;
  preamble->world_size = world_size;
  preamble->magic.store(kMagic, std::memory_order_release);
  return ControlBlock(memory);
}

bool ControlBlock::valid_for(int world_size) const {
  return preamble().magic.load(std::memory_order_acquire) == kMagic && preamble().world_size == world_size;
}

}  // namespace gradring::comm
