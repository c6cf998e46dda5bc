// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/half_pairs.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

/// The maxima of the four elements of a window of 2 x 2, of two channels a register (half_pairs.h), rounded and with
/// ReLU. Adds their codes to `codes`: that of the lower half from bit kBit on, of the upper one from kBit + 16. Where a
/// maximum is large (are_large), both are wrong.
__device__ inline std::uint32_t maxima_of_pairs(const std::uint32_t (&z)[4], std::uint32_t& codes, int bit) {
  using lib::kBitsOfA, lib::kBitsOfB, lib::kBitsOfC;
  const std::uint32_t first = lib::larger_of_pairs(z[0], z[1]), second = lib::larger_of_pairs(z[2], z[3]);
  const std::uint32_t in_second = lib::where_greater(second, first);
  const std::uint32_t is_odd = lib::combine_bits<(kBitsOfA & kBitsOfB) | (~kBitsOfA & kBitsOfC)>(
      in_second, lib::where_greater(z[3], z[2]), lib::where_greater(z[1], z[0]));
  const std::uint32_t maxima = lib::larger_of_pairs(first, second);
  constexpr unsigned kAddMasked = kBitsOfA | (kBitsOfB & kBitsOfC);
  codes = lib::combine_bits<kAddMasked>(codes, is_odd, 0x00010001u << bit);
  codes = lib::combine_bits<kAddMasked>(codes, in_second, 0x00020002u << bit);
  codes =
      lib::combine_bits<kBitsOfA | (~kBitsOfB & kBitsOfC)>(codes, lib::where_greater(maxima, 0), 0x000f000fu << bit);
  return maxima;
}

/// Whether a maximum is above 0x7c00: a NaN, or nearly the largest of bf16.
template <int kPairs>
__device__ bool are_large(const std::uint32_t (&maxima)[kPairs]) {
  std::uint32_t above = 0;
  SIMT_UNROLL_ON_GPU
  for (const std::uint32_t pair : maxima) above |= pair + 0x03ff03ffu;
  return (above & 0x80008000u) != 0;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
