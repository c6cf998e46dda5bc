// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/tensor_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>

#include "kernels/simulated_gpu/units/fault.h"
#include "tests/kernels/simulated_gpu/units/cute_layout.h"

namespace gradring::simulated_gpu {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// A tensor of 16-bit numbers 1, 2, ... in memory, its rows padded to a multiple of 16 bytes.
struct CopyCase {
  TensorMap map;
  std::vector<std::uint16_t> memory;

  CopyCase(std::vector<std::uint64_t> sizes, std::vector<std::uint32_t> counts, std::vector<std::uint32_t> steps,
           Swizzle swizzle) {
    map.element_bytes = 2;
    map.rank = static_cast<unsigned>(sizes.size());
    map.swizzle = swizzle;
    std::uint64_t stride = 2;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      map.sizes[i] = sizes[i];
      map.counts[i] = counts[i];
      map.steps[i] = steps[i];
      map.strides_bytes[i] = stride;
      stride = (stride * sizes[i] + 15) / 16 * 16;
    }
    memory.resize(stride / 2);
    std::iota(memory.begin(), memory.end(), std::uint16_t{1});
    map.address = std::bit_cast<std::uint64_t>(memory.data());
  }

  /// By definition: the element at these coordinates, 0 outside.
  std::uint16_t element(std::span<const std::int64_t> place) const {
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < place.size(); ++i) {
      if (place[i] < 0 || place[i] >= static_cast<std::int64_t>(map.sizes[i])) return 0;
      offset += static_cast<std::uint64_t>(place[i]) * map.strides_bytes[i];
    }
    return memory[offset / 2];
  }

  void expect_box(const std::vector<std::int32_t>& coordinates, std::uint32_t to) const {
    std::vector<BoxChunk> chunks;
    box_chunks(map, coordinates, to, chunks);
    ASSERT_EQ(chunks.size() * kChunkBytes, map.box_bytes());
    std::vector<std::uint16_t> shared(to / 2 + map.box_bytes() / 2, 0xFFFF);
    std::set<std::uint32_t> addresses;
    for (const BoxChunk& chunk : chunks) {
      addresses.insert(chunk.shared);
      ASSERT_LE(chunk.shared + kChunkBytes, 2 * shared.size());
      auto* target = reinterpret_cast<std::byte*>(shared.data()) + chunk.shared;
      std::memset(target, 0, kChunkBytes);
      if (chunk.bytes == 0) continue;
      ASSERT_GE(chunk.global, map.address);
      ASSERT_LE(chunk.global + chunk.bytes, map.address + 2 * memory.size());
      std::memcpy(target + chunk.first, std::bit_cast<const void*>(chunk.global), chunk.bytes);
    }
    EXPECT_EQ(addresses.size(), chunks.size());

    const int bits = static_cast<int>(map.swizzle);
    std::vector<std::int64_t> place(coordinates.size());
    for (std::uint32_t i = 0; i < map.box_bytes() / 2; ++i) {
      std::uint32_t rest = i;
      for (std::size_t dimension = 0; dimension < place.size(); ++dimension) {
        place[dimension] = coordinates[dimension] + std::int64_t{rest % map.counts[dimension]} * map.steps[dimension];
        rest /= map.counts[dimension];
      }
      const int address = cute_swizzle(bits, 4, 3, static_cast<int>(to + 2 * i));
      ASSERT_EQ(shared[static_cast<std::size_t>(address) / 2], element(place)) << i;
    }
  }
};

TEST(SimulatedTensorCopy, CopiesBoxesInsideAndAcrossEdges) {
  for (const Swizzle swizzle : {Swizzle::none, Swizzle::bytes_128}) {
    const CopyCase matrix({200, 50}, {64, 16}, {1, 1}, swizzle);
    for (const std::int32_t column : {-70, -64, -63, -5, 0, 3, 64, 136, 137, 190, 199, 200, 300}) {
      for (const std::int32_t row : {-20, -16, -15, -1, 0, 20, 34, 35, 49, 50}) {
        matrix.expect_box({column, row}, 2048);
      }
    }
  }
}

TEST(SimulatedTensorCopy, SwizzlesByAddressInSharedMemory) {
  const CopyCase narrow({40, 40}, {16, 32}, {1, 1}, Swizzle::bytes_32);
  const CopyCase middle({40, 40}, {32, 32}, {1, 1}, Swizzle::bytes_64);
  const CopyCase wide({80, 40}, {64, 32}, {1, 1}, Swizzle::bytes_128);
  for (const std::uint32_t to : {0U, 128U, 384U, 1024U}) {  // also where no pattern begins
    narrow.expect_box({8, 4}, to);
    middle.expect_box({8, 4}, to);
    wide.expect_box({8, 4}, to);
  }
}

TEST(SimulatedTensorCopy, CopiesRanksOneToFive) {
  CopyCase({1000}, {256}, {1}, Swizzle::none).expect_box({900}, 0);
  CopyCase({24, 5, 7}, {16, 3, 2}, {1, 1, 1}, Swizzle::bytes_32).expect_box({-3, 4, 6}, 256);
  CopyCase({24, 5, 7, 3}, {8, 3, 2, 2}, {1, 1, 1, 1}, Swizzle::none).expect_box({20, -1, 0, 2}, 128);
  CopyCase({24, 5, 7, 3, 2}, {32, 3, 2, 2, 2}, {1, 1, 1, 1, 1}, Swizzle::bytes_64).expect_box({-4, 3, -1, 2, 1}, 128);
}

TEST(SimulatedTensorCopy, StepsOverElements) {
  CopyCase({64, 50}, {16, 8}, {1, 3}, Swizzle::none).expect_box({5, 30}, 0);
  CopyCase({64, 50, 9}, {16, 8, 3}, {1, 2, 4}, Swizzle::bytes_32).expect_box({5, -3, 1}, 0);
}

TEST(SimulatedTensorCopy, CountsWholeBox) {
  const CopyCase matrix({200, 50}, {64, 16}, {1, 1}, Swizzle::none);
  EXPECT_EQ(matrix.map.box_bytes(), 64U * 16 * 2);
  std::vector<BoxChunk> chunks;
  const std::int32_t outside[] = {500, 500};
  box_chunks(matrix.map, outside, 0, chunks);
  EXPECT_EQ(chunks.size(), 64U * 16 * 2 / 16);
  for (const BoxChunk& chunk : chunks) EXPECT_EQ(chunk.bytes, 0);
}

TEST(SimulatedTensorCopy, RejectsWrongArguments) {
  const CopyCase matrix({200, 50}, {64, 16}, {1, 1}, Swizzle::none);
  std::vector<BoxChunk> chunks;
  const std::int32_t one[] = {0};
  const std::int32_t two[] = {0, 0};
  EXPECT_THAT([&] { box_chunks(matrix.map, one, 0, chunks); }, ThrowsMessage<Fault>(HasSubstr("1 coordinates")));
  EXPECT_THAT([&] { box_chunks(matrix.map, two, 64, chunks); }, ThrowsMessage<Fault>(HasSubstr("multiple of 128")));
}

// Planted: a copy without the swizzle that its reader assumes leaves other bytes in the same place.
TEST(SimulatedTensorCopy, SwizzleMattersToReader) {
  const CopyCase swizzled_copy({64, 64}, {64, 64}, {1, 1}, Swizzle::bytes_128);
  const CopyCase plain({64, 64}, {64, 64}, {1, 1}, Swizzle::none);
  std::vector<BoxChunk> chunks[2];
  const std::int32_t origin[] = {0, 0};
  box_chunks(swizzled_copy.map, origin, 0, chunks[0]);
  box_chunks(plain.map, origin, 0, chunks[1]);
  int moved = 0;
  for (std::size_t i = 0; i < chunks[0].size(); ++i) moved += chunks[0][i].shared != chunks[1][i].shared ? 1 : 0;
  EXPECT_EQ(moved, 64 * 8 * 7 / 8);  // one line in eight stays
}

}  // namespace
}  // namespace gradring::simulated_gpu
