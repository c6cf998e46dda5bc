// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/matrix_descriptor.h"

#include <cstdio>
#include <string>

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

}  // namespace

MatrixDescriptor MatrixDescriptor::decode(std::uint64_t bits) {
  constexpr std::uint64_t kDefined = 0x3FFF | 0x3FFFULL << 16 | 0x3FFFULL << 32 | 0x7ULL << 49 | 0x3ULL << 62;
  if ((bits & ~kDefined) != 0) {
    char text[2][20];
    std::snprintf(text[0], sizeof(text[0]), "0x%016llx", static_cast<unsigned long long>(bits));
    std::snprintf(text[1], sizeof(text[1]), "0x%016llx", static_cast<unsigned long long>(bits & ~kDefined));
    throw Fault(std::string("matrix descriptor ") + text[0] + " has reserved bits set (" + text[1] +
                "): encode addresses and offsets as (bytes & 0x3FFFF) >> 4");
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

}  // namespace gradring::simulated_gpu
