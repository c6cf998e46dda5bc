// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/tensor_copy.h"

#include <algorithm>
#include <string>

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

/// One row of the box: `begin` and `end` are the bytes of it that are inside the tensor, `global` where byte 0 is or
/// would be.
struct BoxRow {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint64_t global = 0;
};

/// `row` counts the rows of the box, the second dimension fastest.
BoxRow row_of(const TensorMap& map, std::span<const std::int32_t> coordinates, std::uint32_t row) {
  BoxRow found{.global = map.address};
  bool is_inside = true;
  for (unsigned i = 1; i < map.rank; ++i) {
    const std::int64_t place = coordinates[i] + std::int64_t{row % map.counts[i]} * map.steps[i];
    row /= map.counts[i];
    is_inside = is_inside && place >= 0 && place < static_cast<std::int64_t>(map.sizes[i]);
    found.global += static_cast<std::uint64_t>(place) * map.strides_bytes[i];
  }
  const std::int64_t first = coordinates[0];
  found.global += static_cast<std::uint64_t>(first) * map.element_bytes;  // modulo 2^64: `first` may be negative
  if (!is_inside) return found;
  const std::int64_t last = std::min<std::int64_t>(map.counts[0], static_cast<std::int64_t>(map.sizes[0]) - first);
  found.begin = std::max<std::int64_t>(0, -first) * map.element_bytes;
  found.end = std::max(found.begin, last * map.element_bytes);
  return found;
}

}  // namespace

void box_chunks(const TensorMap& map, std::span<const std::int32_t> coordinates, std::uint32_t shared_address,
                std::vector<BoxChunk>& chunks) {
  if (coordinates.size() != map.rank) {
    throw Fault("tensor copy has " + std::to_string(coordinates.size()) + " coordinates, and its tensor map has rank " +
                std::to_string(map.rank));
  }
  if (shared_address % kBoxAlignment != 0) {
    throw Fault("tensor copy has address " + std::to_string(shared_address) +
                " of shared memory, which is not a multiple of 128");
  }
  chunks.clear();
  chunks.reserve(map.box_bytes() / kChunkBytes);
  const std::uint32_t rows = map.box_bytes() / map.row_bytes();
  const std::int64_t row_bytes = map.row_bytes();
  std::uint32_t address = shared_address;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const BoxRow source = row_of(map, coordinates, row);
    for (std::int64_t byte = 0; byte < row_bytes; byte += kChunkBytes, address += kChunkBytes) {
      const std::int64_t begin = std::clamp<std::int64_t>(source.begin - byte, 0, kChunkBytes);
      const std::int64_t end = std::clamp<std::int64_t>(source.end - byte, begin, kChunkBytes);
      BoxChunk chunk{.shared = swizzled(map.swizzle, address)};
      if (begin < end) {
        chunk.first = static_cast<std::uint8_t>(begin);
        chunk.bytes = static_cast<std::uint8_t>(end - begin);
        chunk.global = source.global + static_cast<std::uint64_t>(byte + begin);
      }
      chunks.push_back(chunk);
    }
  }
}

}  // namespace gradring::simulated_gpu
