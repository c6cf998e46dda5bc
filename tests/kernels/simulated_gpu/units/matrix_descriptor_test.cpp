// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/wgmma.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/simulated_gpu/units/fault.h"
#include "tests/kernels/simulated_gpu/units/cute_layout.h"

namespace gradring::simulated_gpu {
namespace {

constexpr Swizzle kSwizzles[] = {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128};

/// The bit fields of CUTLASS's GmmaDescriptor, by hand.
std::uint64_t encode(std::uint64_t start, std::uint64_t leading, std::uint64_t stride, std::uint64_t base,
                     std::uint64_t mode) {
  return start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | base << 49 | mode << 62;
}

std::vector<std::uint32_t> addresses_of(const MatrixDescriptor& descriptor, Major major, int first, int extent) {
  std::vector<std::uint32_t> addresses(chunks_of(extent));
  chunk_addresses(descriptor, major, first, extent, addresses);
  return addresses;
}

TEST(SimulatedMatrixDescriptor, DecodesFields) {
  const MatrixDescriptor descriptor = MatrixDescriptor::decode(encode(0x3FFF0, 0x12340, 0x2ABC0, 5, 2));
  EXPECT_EQ(descriptor.start, 0x3FFF0U);
  EXPECT_EQ(descriptor.leading_bytes, 0x12340U);
  EXPECT_EQ(descriptor.stride_bytes, 0x2ABC0U);
  EXPECT_EQ(descriptor.base_offset, 5U);
  EXPECT_EQ(descriptor.swizzle, Swizzle::bytes_64);
  EXPECT_EQ(MatrixDescriptor::decode(encode(0, 0, 0, 0, 0)).swizzle, Swizzle::none);
  EXPECT_EQ(MatrixDescriptor::decode(encode(0, 0, 0, 0, 1)).swizzle, Swizzle::bytes_128);
  EXPECT_EQ(MatrixDescriptor::decode(encode(0, 0, 0, 0, 3)).swizzle, Swizzle::bytes_32);
}

TEST(SimulatedMatrixDescriptor, RejectsReservedBits) {
  for (const int bit : {14, 15, 30, 31, 46, 47, 48, 52, 61}) {
    EXPECT_THROW(MatrixDescriptor::decode(std::uint64_t{1} << bit), Fault) << bit;
  }
}

// PTX ISA 9.0, 5.5.7, the tables of the swizzling modes: where the pieces 0 to 7 of each line of 128 bytes lie.
TEST(SimulatedSwizzle, PermutesAsTablesShow) {
  constexpr int kTable128[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}, {2, 3, 0, 1, 6, 7, 4, 5},
                                   {3, 2, 1, 0, 7, 6, 5, 4}, {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                   {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
  constexpr int kTable64[4][8] = {
      {0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}, {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4}};
  constexpr int kTable32[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
  for (std::uint32_t line = 0; line < 32; ++line) {
    for (std::uint32_t piece = 0; piece < 8; ++piece) {
      const std::uint32_t address = 128 * line + 16 * piece + 5;  // bytes within a piece stay together
      EXPECT_EQ(swizzled(Swizzle::none, address), address);
      EXPECT_EQ(swizzled(Swizzle::bytes_32, address), 128 * line + 16 * kTable32[line % 2][piece] + 5);
      EXPECT_EQ(swizzled(Swizzle::bytes_64, address), 128 * line + 16 * kTable64[line % 4][piece] + 5);
      EXPECT_EQ(swizzled(Swizzle::bytes_128, address), 128 * line + 16 * kTable128[line % 8][piece] + 5);
      // A pattern that begins at line 3: its first line is not permuted.
      EXPECT_EQ(swizzled(Swizzle::bytes_128, address + 3 * 128, 3),
                128 * (line + 3) + 16 * kTable128[line % 8][piece] + 5);
    }
  }
}

// CUTLASS 4.2, mma_traits_sm90_gmma.hpp, "In units of uint128_t, each GmmaDescriptor Major-K describes a canonical
// layout".
TEST(SimulatedMatrixDescriptor, AgreesWithCutlassMajorK) {
  constexpr int kLeading =
      37;  // in pieces of 16 bytes; not what a kernel would choose, so that nothing agrees by chance
  constexpr int kStride = 131;
  constexpr int kRowWidths[] = {1, 2, 4, 8};
  for (int mode = 0; mode < 4; ++mode) {
    const MatrixDescriptor descriptor{.start = 1024,
                                      .leading_bytes = kLeading * 16,
                                      .stride_bytes = kStride * 16,
                                      .base_offset = 0,
                                      .swizzle = kSwizzles[mode]};
    for (const int extent : {8, 16, 64, 256}) {
      // Swizzle<0..3, 4, 3> o ((8, n), 2) : ((1 | 2 | 4 | 8, SBO), LBO | 1)
      const CuteLayout layout({8, extent / 8, 2}, {kRowWidths[mode], kStride, mode == 0 ? kLeading : 1});
      const auto addresses = addresses_of(descriptor, Major::k, 0, extent);
      for (int mn = 0; mn < extent; ++mn) {
        for (int half = 0; half < 2; ++half) {
          const int expected = cute_swizzle(mode, 4, 3, 1024 + 16 * layout(mn + extent * half));
          ASSERT_EQ(addresses[static_cast<std::size_t>(2 * mn + half)], expected) << mode << ' ' << mn << ' ' << half;
        }
      }
    }
  }
}

// The same file: "each GmmaDescriptor Major-MN describes a canonical layout".
TEST(SimulatedMatrixDescriptor, AgreesWithCutlassMajorMn) {
  constexpr int kLeading = 523;
  constexpr int kStride = 131;
  constexpr int kWidths[] = {1, 2, 4, 8};
  for (int mode = 0; mode < 4; ++mode) {
    const MatrixDescriptor descriptor{.start = 2048,
                                      .leading_bytes = kLeading * 16,
                                      .stride_bytes = kStride * 16,
                                      .base_offset = 0,
                                      .swizzle = kSwizzles[mode]};
    for (const int extent : {64, 128, 256}) {
      // none: ((1, n), (8, k)) : ((X, SBO), (1, LBO)); others: ((W, n), (8, k)) : ((1, LBO), (W, SBO))
      const int width = kWidths[mode];
      const int outer = extent / 8 / width;
      const CuteLayout layout({width, outer, 8, 2}, mode == 0 ? std::vector<int>{0, kStride, 1, kLeading}
                                                              : std::vector<int>{1, kLeading, width, kStride});
      const auto addresses = addresses_of(descriptor, Major::mn, 0, extent);
      for (int k = 0; k < 16; ++k) {
        for (int piece = 0; piece < extent / 8; ++piece) {
          const int expected = cute_swizzle(mode, 4, 3, 2048 + 16 * layout(piece + extent / 8 * k));
          ASSERT_EQ(addresses[static_cast<std::size_t>(extent / 8 * k + piece)], expected) << mode << ' ' << k;
        }
      }
    }
  }
}

TEST(SimulatedMatrixDescriptor, PartOfExtentIsPartOfAddresses) {
  for (const Swizzle swizzle : kSwizzles) {
    const MatrixDescriptor descriptor{.start = 0, .leading_bytes = 4096, .stride_bytes = 512, .swizzle = swizzle};
    const auto whole = addresses_of(descriptor, Major::k, 0, 64);
    const auto part = addresses_of(descriptor, Major::k, 48, 16);
    EXPECT_EQ(part, std::vector(whole.begin() + 96, whole.end()));
    const auto whole_mn = addresses_of(descriptor, Major::mn, 0, 64);
    const auto part_mn = addresses_of(descriptor, Major::mn, 16, 16);
    for (std::size_t k = 0; k < 16; ++k) {
      EXPECT_EQ(part_mn[2 * k], whole_mn[8 * k + 2]);
      EXPECT_EQ(part_mn[2 * k + 1], whole_mn[8 * k + 3]);
    }
  }
}

// A descriptor that is advanced along k within a swizzled row, as CUTLASS does it: the pattern stays where it is.
TEST(SimulatedMatrixDescriptor, AdvancesAlongRow) {
  const MatrixDescriptor first{.start = 1024, .leading_bytes = 16, .stride_bytes = 1024, .swizzle = Swizzle::bytes_128};
  MatrixDescriptor second = first;
  second.start += 32;
  const auto addresses = addresses_of(second, Major::k, 0, 64);
  for (std::uint32_t row = 0; row < 64; ++row) {
    EXPECT_EQ(addresses[2 * row], 1024 + row * 128 + (2 ^ row % 8) * 16);
    EXPECT_EQ(addresses[2 * row + 1], 1024 + row * 128 + (3 ^ row % 8) * 16);
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
