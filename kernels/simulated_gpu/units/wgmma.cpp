// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/wgmma.h"

#include <bit>
#include <cstdio>
#include <cstring>

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

std::uint32_t bit_field(std::uint64_t bits, int first, int count) {
  return static_cast<std::uint32_t>(bits >> first & ((std::uint64_t{1} << count) - 1));
}

/// Without swizzle() and in bytes from the start, for a piece that holds element (mn, k).
std::uint32_t linear_offset(const MatrixDescriptor& descriptor, Major major, std::uint32_t mn, std::uint32_t k) {
  const bool is_swizzled = descriptor.swizzle != Swizzle::none;
  const std::uint32_t width = chunks_in_row(descriptor.swizzle);
  const std::uint32_t leading = descriptor.leading_bytes;
  const std::uint32_t stride = descriptor.stride_bytes;
  if (major == Major::k) {
    return mn % 8 * width * kChunkBytes + mn / 8 * stride + k / 8 * (is_swizzled ? kChunkBytes : leading);
  }
  const std::uint32_t chunk = mn / 8;
  if (!is_swizzled) return k % 8 * kChunkBytes + k / 8 * leading + chunk * stride;
  return k % 8 * width * kChunkBytes + k / 8 * stride + chunk % width * kChunkBytes + chunk / width * leading;
}

/// `flip` negates elements of f16 or bf16 by exclusive or.
Elements elements_of(const Chunk& chunk, std::uint16_t flip) { return std::bit_cast<Elements>(chunk) ^ flip; }

std::uint16_t sign_flip(bool negates) { return negates ? 0x8000 : 0; }

/// An operand of 8 `blocks` rows or columns (mn) as rows of k: bits[k][mn].
template <std::size_t kWidth>
void read_rows_of_k(Major major, bool negates, std::size_t blocks, std::span<const Chunk> chunks,
                    std::uint16_t (&bits)[16][kWidth]) {
  const std::uint16_t flip = sign_flip(negates);
  if (major == Major::mn) {
    for (std::size_t k = 0; k < 16; ++k) {
      for (std::size_t block = 0; block < blocks; ++block) {
        const Elements elements = elements_of(chunks[blocks * k + block], flip);
        std::memcpy(&bits[k][8 * block], &elements, sizeof(elements));
      }
    }
    return;
  }
  for (std::size_t i = 0; i < 2 * blocks; ++i) {
    const std::size_t block = i / 2;
    const std::size_t half = i % 2;
    Elements rows[8];
    for (std::size_t mn = 0; mn < 8; ++mn) rows[mn] = elements_of(chunks[2 * (8 * block + mn) + half], flip);
    transpose(rows);
    for (std::size_t k = 0; k < 8; ++k) std::memcpy(&bits[8 * half + k][8 * block], &rows[k], sizeof(rows[k]));
  }
}

}  // namespace

MatrixDescriptor MatrixDescriptor::decode(std::uint64_t bits) {
  constexpr std::uint64_t kDefined = 0x3FFF | 0x3FFFULL << 16 | 0x3FFFULL << 32 | 0x7ULL << 49 | 0x3ULL << 62;
  if ((bits & ~kDefined) != 0) {
    char text[2][20];
    std::snprintf(text[0], sizeof(text[0]), "0x%016llx", static_cast<unsigned long long>(bits));
    std::snprintf(text[1], sizeof(text[1]), "0x%016llx", static_cast<unsigned long long>(bits & ~kDefined));
    throw Fault(joined("matrix descriptor ", text[0], " has reserved bits set (", text[1],
                       "): encode addresses and offsets as (bytes & 0x3FFFF) >> 4"));
  }
  constexpr Swizzle kModes[] = {Swizzle::none, Swizzle::bytes_128, Swizzle::bytes_64, Swizzle::bytes_32};
  return {.start = bit_field(bits, 0, 14) * kChunkBytes,
          .leading_bytes = bit_field(bits, 16, 14) * kChunkBytes,
          .stride_bytes = bit_field(bits, 32, 14) * kChunkBytes,
          .base_offset = bit_field(bits, 49, 3),
          .swizzle = kModes[bit_field(bits, 62, 2)]};
}

void chunk_addresses(const MatrixDescriptor& descriptor, Major major, int first, int extent,
                     std::span<std::uint32_t> addresses) {
  const auto address = [descriptor, major](int mn, int k) {  // a copy, which `addresses` cannot alias
    const std::uint32_t linear = descriptor.start + linear_offset(descriptor, major, static_cast<std::uint32_t>(mn),
                                                                  static_cast<std::uint32_t>(k));
    return swizzled(descriptor.swizzle, linear, descriptor.base_offset);
  };
  std::size_t i = 0;
  if (major == Major::k) {
    for (int mn = first; mn < first + extent; ++mn) {
      for (int k = 0; k < 16; k += 8) addresses[i++] = address(mn, k);
    }
  } else {
    for (int k = 0; k < 16; ++k) {
      for (int mn = first; mn < first + extent; mn += 8) addresses[i++] = address(mn, k);
    }
  }
}

void read_chunks(Half type, Major major, bool negates, std::span<const Chunk> chunks, LeftMatrix& a) {
  std::uint16_t bits[16][16];
  float by_k[16][16];
  read_rows_of_k(major, negates, 2, chunks, bits);
  to_f32(type, bits[0], by_k[0], 256);
  float elements[16][16];
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) elements[row][k] = by_k[k][row];
  }
  set_elements(elements, a);
}

void read_chunks(Half type, Major major, bool negates, int columns, std::span<const Chunk> chunks, RightMatrix& b) {
  std::uint16_t bits[16][kMostColumns];
  const auto width = static_cast<std::size_t>(columns);
  read_rows_of_k(major, negates, width / 8, chunks, bits);
  for (std::size_t k = 0; k < 16; ++k) to_f32(type, bits[k], b.values[k], width);
}

}  // namespace gradring::simulated_gpu
