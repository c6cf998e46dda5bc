// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "comm/transport/segment.h"

namespace gradring::comm {

/// Shard `index` of `elements` elements split into `world` consecutive shards: the first elements % world of them are
/// longer by one. A shard may be empty.
constexpr Slice shard_of(std::size_t elements, std::size_t world, std::size_t index) {
  const std::size_t base = elements / world;
  const std::size_t longer = elements % world;
  return {index * base + std::min(index, longer), base + (index < longer ? 1 : 0)};
}

/// The number of chunks of a slice of `elements`: at least one, because empty slices are sent too. chunk 0: no limit.
constexpr std::size_t chunk_count(std::size_t elements, std::size_t chunk) {
  if (chunk == 0 || elements == 0) return 1;
  return (elements - 1) / chunk + 1;
}

/// Chunk `index` of a slice; empty past its end, because slices of one collective differ in length by one.
constexpr Slice chunk_of(const Slice& slice, std::size_t chunk, std::size_t index) {
  if (chunk == 0) return slice;
  const std::size_t begin = std::min(index * chunk, slice.elements);
  return {slice.offset + begin, std::min(chunk, slice.elements - begin)};
}

}  // namespace gradring::comm
