// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/wgmma.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "kernels/simulated_gpu/units/mma.h"
#include "kernels/simulated_gpu/units/tensor_map.h"
#include "tests/kernels/simulated_gpu/units/cute_layout.h"
#include "tests/kernels/simulated_gpu/units/test_matrix.h"

namespace gradring::simulated_gpu {
namespace {

constexpr Swizzle kModes[] = {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128};
constexpr std::size_t kSharedBytes = 96 * 1024;

struct SharedMemory {
  std::vector<std::byte> bytes = std::vector<std::byte>(kSharedBytes, std::byte{0xFF});

  void store(std::uint32_t address, std::uint16_t element) {
    std::memcpy(&bytes.at(address), &element, sizeof(element));
  }
  std::vector<Chunk> load(std::span<const std::uint32_t> addresses) const {
    std::vector<Chunk> chunks(addresses.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) std::memcpy(&chunks[i], &bytes.at(addresses[i]), sizeof(Chunk));
    return chunks;
  }
};

/// Where an operand lies: without gaps, in the canonical layout of CUTLASS for its mode.
struct OperandPlan {
  int mode;  ///< B of Swizzle<B, 4, 3>
  Major major;
  int extent;
  std::uint32_t start;

  int atom_bytes() const { return 128 << mode; }  // 8 rows of W pieces
  int leading() const {
    if (major == Major::k) return 128;  // used without swizzle only: the next 8 of k
    return mode == 0 ? extent / 8 * 128 : 2 * atom_bytes();
  }
  int stride() const {
    if (major == Major::k) return mode == 0 ? 256 : atom_bytes();
    return mode == 0 ? 128 : atom_bytes();
  }
  MatrixDescriptor descriptor() const {
    return {.start = start,
            .leading_bytes = static_cast<std::uint32_t>(leading()),
            .stride_bytes = static_cast<std::uint32_t>(stride()),
            .base_offset = 0,
            .swizzle = kModes[mode]};
  }
  /// Elements, (mn, k) with mn fastest; the comment above make_gmma_desc in CUTLASS 4.2's mma_traits_sm90_gmma.hpp, T =
  /// 8.
  CuteLayout layout() const {
    const int width = 1 << mode;
    const int lead = leading() / 2;
    const int step = stride() / 2;
    if (major == Major::k) return {{8, extent / 8, 8, 2}, {width * 8, step, 1, mode == 0 ? lead : 8}};
    if (mode == 0) return {{8, 1, extent / 8, 8, 2}, {1, 8, step, 8, lead}};
    return {{8, width, extent / 8 / width, 8, 2}, {1, 8, lead, width * 8, step}};
  }
  /// `matrix` is [mn, 16].
  void store(Half type, const TestMatrix& matrix, SharedMemory& shared) const {
    const CuteLayout position = layout();
    for (int k = 0; k < 16; ++k) {
      for (int mn = 0; mn < extent; ++mn) {
        const int linear = static_cast<int>(start) + 2 * position(mn + extent * k);
        shared.store(static_cast<std::uint32_t>(cute_swizzle(mode, 4, 3, linear)), to_half(type, matrix.at(mn, k)));
      }
    }
  }
};

struct WgmmaCase {
  Half type = Half::f16;
  MatrixDescriptor a, b;
  Major major_a = Major::k;
  Major major_b = Major::k;
  int columns = 8;
  bool negates_a = false;
  bool negates_b = false;
  bool keeps = true;

  /// D (64 x columns) after all four warps, each beginning with its rows of `d`.
  TestMatrix run(const SharedMemory& shared, const TestMatrix& d) const {
    std::vector<std::uint32_t> addresses(chunks_of(columns));
    chunk_addresses(b, major_b, 0, columns, addresses);
    const auto right = std::make_unique<RightMatrix>();
    read_chunks(type, major_b, negates_b, columns, shared.load(addresses), *right);
    TestMatrix result{.rows = 64, .columns = columns};
    for (int warp = 0; warp < 4; ++warp) {
      addresses.resize(chunks_of(16));
      chunk_addresses(a, major_a, 16 * warp, 16, addresses);
      LeftMatrix left;
      read_chunks(type, major_a, negates_a, shared.load(addresses), left);
      multiply_rows(left, *right, warp, d, result);
    }
    return result;
  }
  void multiply_rows(const LeftMatrix& left, const RightMatrix& right, int warp, const TestMatrix& d,
                     TestMatrix& result) const {
    TestMatrix wide{.rows = 16, .columns = kMostColumns};
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < columns; ++j) wide.at(i, j) = d.at(16 * warp + i, j);
    }
    TestRegisters<kMostColumns / 2> registers;
    registers.set_accumulators(wide);
    const auto rows = registers.out();
    multiply_add(left, right, 16, keeps, std::span(rows).first(static_cast<std::size_t>(columns) / 2));
    wide = registers.accumulators();
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < columns; ++j) result.at(16 * warp + i, j) = wide.at(i, j);
      for (int j = columns; j < kMostColumns; ++j) EXPECT_EQ(wide.at(i, j), 0);
    }
  }
};

/// The operands of a wgmma in shared memory, and its result.
struct StoredWgmma {
  WgmmaCase wgmma;
  SharedMemory shared;
  TestMatrix d;
  TestMatrix expected;

  StoredWgmma(Half type, int columns, int mode_a, Major major_a, int mode_b, Major major_b)
      : d(random_integers(64, columns, 3)) {
    const OperandPlan plan_a{.mode = mode_a, .major = major_a, .extent = 64, .start = 1024};
    const OperandPlan plan_b{.mode = mode_b, .major = major_b, .extent = columns, .start = 32 * 1024};
    const TestMatrix a = random_integers(64, 16, 1);
    const TestMatrix b = random_integers(columns, 16, 2);
    plan_a.store(type, a, shared);
    plan_b.store(type, b, shared);
    wgmma = {.type = type,
             .a = plan_a.descriptor(),
             .b = plan_b.descriptor(),
             .major_a = major_a,
             .major_b = major_b,
             .columns = columns};
    expected = product_of(a, transposed(b), d);
  }
  TestMatrix run() const { return wgmma.run(shared, d); }
};

TEST(SimulatedWgmma, MultipliesInEveryCanonicalLayout) {
  for (const Half type : {Half::f16, Half::bf16}) {
    for (const int columns : {64, 128, 256}) {
      for (int mode = 0; mode < 4; ++mode) {
        for (const Major a : {Major::k, Major::mn}) {
          for (const Major b : {Major::k, Major::mn}) {
            const StoredWgmma stored(type, columns, mode, a, 3 - mode, b);
            ASSERT_EQ(stored.run(), stored.expected) << columns << ' ' << mode;
          }
        }
      }
    }
  }
}

TEST(SimulatedWgmma, MultipliesEveryWidth) {
  for (int columns = 8; columns <= 256; columns += 8) {
    ASSERT_TRUE(is_wgmma_width(columns));
    const StoredWgmma stored(Half::f16, columns, 3, Major::k, 1, Major::k);
    ASSERT_EQ(stored.run(), stored.expected) << columns;
  }
  for (const int columns : {0, 4, 12, 257, 264}) EXPECT_FALSE(is_wgmma_width(columns));
}

TEST(SimulatedWgmma, ScalesOperandsAndAccumulators) {
  StoredWgmma stored(Half::bf16, 64, 3, Major::k, 3, Major::mn);
  TestMatrix zero{.rows = 64, .columns = 64};
  TestMatrix ab = stored.expected;
  for (std::size_t i = 0; i < ab.values.size(); ++i) ab.values[i] -= stored.d.values[i];
  stored.wgmma.keeps = false;
  EXPECT_EQ(stored.run(), ab);
  stored.wgmma.negates_a = true;
  TestMatrix negated = ab;
  for (float& value : negated.values) value = -value;
  EXPECT_EQ(stored.run(), negated);
  stored.wgmma.negates_b = true;
  EXPECT_EQ(stored.run(), ab);
  stored.wgmma.negates_a = false;
  EXPECT_EQ(stored.run(), negated);
}

TEST(SimulatedWgmma, TakesAFromRegisters) {
  const StoredWgmma stored(Half::f16, 32, 0, Major::k, 2, Major::k);
  const TestMatrix a = random_integers(64, 16, 1);
  std::vector<std::uint32_t> addresses(chunks_of(32));
  chunk_addresses(stored.wgmma.b, Major::k, 0, 32, addresses);
  const auto right = std::make_unique<RightMatrix>();
  read_chunks(Half::f16, Major::k, false, 32, stored.shared.load(addresses), *right);
  TestMatrix result{.rows = 64, .columns = 32};
  for (int warp = 0; warp < 4; ++warp) {
    TestRegisters<4> registers;
    registers.set_halves(Half::f16, a, [warp](int lane, int i) {
      const Position position = position_in_a(lane, i);
      return Position{.row = 16 * warp + position.row, .column = position.column};
    });
    LeftMatrix left;
    read_fragment(Half::f16, registers.in(), left);
    stored.wgmma.multiply_rows(left, *right, warp, stored.d, result);
  }
  EXPECT_EQ(result, stored.expected);
}

// Planted mistakes: each must give another product.
TEST(SimulatedWgmma, WrongDescriptorsGiveAnotherProduct) {
  for (int mode = 0; mode < 4; ++mode) {
    for (const Major major : {Major::k, Major::mn}) {
      const StoredWgmma stored(Half::f16, 128, 3, Major::k, mode, major);
      StoredWgmma wrong = stored;
      std::swap(wrong.wgmma.b.leading_bytes, wrong.wgmma.b.stride_bytes);
      EXPECT_NE(wrong.run(), stored.expected) << "LBO and SBO swapped, mode " << mode;
      wrong = stored;
      wrong.wgmma.b.swizzle = kModes[mode ^ 1];
      EXPECT_NE(wrong.run(), stored.expected) << "swizzle, mode " << mode;
      wrong = stored;
      wrong.wgmma.major_b = major == Major::k ? Major::mn : Major::k;
      EXPECT_NE(wrong.run(), stored.expected) << "transposed, mode " << mode;
      wrong = stored;
      wrong.wgmma.b.start += 16;
      EXPECT_NE(wrong.run(), stored.expected) << "start, mode " << mode;
      if (mode == 0) continue;
      wrong = stored;
      wrong.wgmma.b.base_offset = 1;
      EXPECT_NE(wrong.run(), stored.expected) << "base offset, mode " << mode;
    }
  }
}

/// Copies the box of 64 x 64 at (column, row) of a matrix of f16 to shared memory, with a swizzle of 128 bytes.
void copy_tile(const std::vector<std::uint16_t>& matrix, int width, int column, int row, std::uint32_t to,
               SharedMemory& shared) {
  const TensorMap map{.address = std::bit_cast<std::uint64_t>(matrix.data()),
                      .element_bytes = 2,
                      .rank = 2,
                      .sizes = {static_cast<std::uint64_t>(width), matrix.size() / static_cast<std::size_t>(width)},
                      .strides_bytes = {2, static_cast<std::uint64_t>(width) * 2},
                      .counts = {64, 64},
                      .steps = {1, 1},
                      .swizzle = Swizzle::bytes_128};
  std::vector<BoxChunk> chunks;
  const std::int32_t position[] = {column, row};
  box_chunks(map, position, to, chunks);
  for (const BoxChunk& chunk : chunks) {
    std::memset(&shared.bytes.at(chunk.shared), 0, kChunkBytes);
    std::memcpy(&shared.bytes.at(chunk.shared) + chunk.first, std::bit_cast<const void*>(chunk.global), chunk.bytes);
  }
}

// The two halves of a GEMM on Hopper meet: what a tensor copy lays down is what descriptors find. B is [n, k], then [k,
// n].
TEST(SimulatedWgmma, FindsWhatTensorCopiesWrote) {
  const TestMatrix a = random_integers(64, 64, 1);
  const TestMatrix b = random_integers(128, 64, 2);
  const TestMatrix c = random_integers(64, 128, 3);
  for (const bool is_n_major : {false, true}) {
    const TestMatrix stored = is_n_major ? transposed(b) : b;
    std::vector<std::uint16_t> a_memory(a.values.size());
    std::vector<std::uint16_t> b_memory(b.values.size());
    to_half(Half::f16, a.values.data(), a_memory.data(), a_memory.size());
    to_half(Half::f16, stored.values.data(), b_memory.data(), b_memory.size());
    SharedMemory shared;
    constexpr std::uint32_t kTileBytes = 64 * 128;
    constexpr std::uint32_t kB = 2 * kTileBytes;
    copy_tile(a_memory, 64, 0, 0, 0, shared);
    for (int tile = 0; tile < 2; ++tile) {
      const std::uint32_t to = kB + static_cast<std::uint32_t>(tile) * kTileBytes;
      copy_tile(b_memory, stored.columns, is_n_major ? 64 * tile : 0, is_n_major ? 0 : 64 * tile, to, shared);
    }
    TestMatrix d = c;
    for (std::uint32_t k = 0; k < 64; k += 16) {
      const WgmmaCase wgmma{
          .type = Half::f16,
          .a = {.start = 2 * k, .leading_bytes = 16, .stride_bytes = 1024, .swizzle = Swizzle::bytes_128},
          .b = {.start = is_n_major ? kB + 128 * k : kB + 2 * k,
                .leading_bytes = is_n_major ? kTileBytes : 16,
                .stride_bytes = 1024,
                .swizzle = Swizzle::bytes_128},
          .major_a = Major::k,
          .major_b = is_n_major ? Major::mn : Major::k,
          .columns = 128};
      d = wgmma.run(shared, d);
    }
    EXPECT_EQ(d, product_of(a, transposed(b), c)) << is_n_major;
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
