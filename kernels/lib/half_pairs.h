// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

/// Two 16-bit elements in a register, the first in its lower half, as fragments of tensor cores hold them
/// (tensor_core.h), and instructions that treat both at once. Elements that are not negative have the order of their
/// bits, whether they are f16 or bf16. So what compares f16 compares bf16, too, up to 0x7c00, which is 2^121 as bf16:
/// above, f16 has NaN.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Both rounded to T.
template <class T>
__device__ inline std::uint32_t pair_of(float lower, float upper) {
#ifdef __CUDACC__
  std::uint32_t pair;
  if constexpr (std::is_same_v<T, __half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  return pair;
#else
  return from_f32<T>(lower).bits | std::uint32_t{from_f32<T>(upper).bits} << 16;
#endif
}

template <class T>
__device__ inline std::uint32_t pair_of(T lower, T upper) {
#ifdef __CUDACC__
  std::uint32_t pair;
  const auto bits = [](const T& element) { return *reinterpret_cast<const unsigned short*>(&element); };
  asm("mov.b32 %0, {%1, %2};" : "=r"(pair) : "h"(bits(lower)), "h"(bits(upper)));
  return pair;
#else
  return lower.bits | std::uint32_t{upper.bits} << 16;
#endif
}

/// Both rounded to T, and 0 where they are negative. NaN stays NaN.
template <class T>
__device__ inline std::uint32_t relu_pair(float lower, float upper) {
#ifdef __CUDACC__
  std::uint32_t pair;
  if constexpr (std::is_same_v<T, __half>)
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  else
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  return pair;
#else
  return pair_of<T>(lower <= 0 ? 0.0f : lower, upper <= 0 ? 0.0f : upper);
#endif
}

#ifndef __CUDACC__
/// f(x, y) of the lower halves, and of the upper ones.
template <class F>
std::uint32_t of_halves(std::uint32_t a, std::uint32_t b, const F& f) {
  return f(a & 0xffffu, b & 0xffffu) | f(a >> 16, b >> 16) << 16;
}
constexpr std::uint32_t kInfinity = 0x7c00;  // of f16
#endif

/// The larger elements; NaN where either is above 0x7c00. Not for negative elements.
__device__ inline std::uint32_t larger_of_pairs(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDACC__
  std::uint32_t larger;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
#else
  return of_halves(a, b, [](std::uint32_t x, std::uint32_t y) {
    return x > kInfinity || y > kInfinity ? 0x7fffu : x > y ? x : y;
  });
#endif
}

/// All bits of an element where a's is above b's; none where either is above 0x7c00. Not for negative elements.
__device__ inline std::uint32_t where_greater(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDACC__
  std::uint32_t mask;
  asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
  return mask;
#else
  return of_halves(a, b, [](std::uint32_t x, std::uint32_t y) { return x > y && x <= kInfinity ? 0xffffu : 0u; });
#endif
}

/// Four bytes of (a, b): byte i of the result is byte (selector >> 4 i & 7) of the eight, of which a has 0 to 3; where
/// bit 4 i + 3 is set, eight times its highest bit instead. Higher bits of the selector do not count.
///
/// Source    PTX ISA, prmt.
__device__ inline std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
#ifdef __CUDACC__
  std::uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
  return bytes;
#else
  const std::uint64_t both = a | std::uint64_t{b} << 32;
  std::uint32_t bytes = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t which = selector >> 4 * i & 15u;
    const auto byte = static_cast<std::uint32_t>(both >> 8 * (which & 7u) & 0xffu);
    bytes |= ((which & 8u) == 0 ? byte : byte >= 0x80u ? 0xffu : 0u) << 8 * i;
  }
  return bytes;
#endif
}

template <std::uint32_t kSelector>
__device__ inline std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDACC__
  std::uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "n"(kSelector));
  return bytes;
#else
  return permute_bytes(a, b, kSelector);
#endif
}

/// bits << count, which is 0 from a count of 32 on.
///
/// Source    PTX ISA, shl.
__device__ inline std::uint32_t shift_left(std::uint32_t bits, std::uint32_t count) {
#ifdef __CUDACC__
  std::uint32_t shifted;
  asm("shl.b32 %0, %1, %2;" : "=r"(shifted) : "r"(bits), "r"(count));
  return shifted;
#else
  return count < 32 ? bits << count : 0;
#endif
}

/// The lower, or the upper, elements of two pairs.
__device__ inline std::uint32_t lower_of_pairs(std::uint32_t a, std::uint32_t b) { return permute_bytes<0x5410>(a, b); }
__device__ inline std::uint32_t upper_of_pairs(std::uint32_t a, std::uint32_t b) { return permute_bytes<0x7632>(a, b); }

/// Every Boolean function f of three words is one instruction, bit by bit; its truth table is f of these three.
///
///   combine_bits<kBitsOfA & ~kBitsOfB | kBitsOfC>(a, b, c)      a & ~b | c
///
/// Source    PTX ISA, lop3.
inline constexpr unsigned kBitsOfA = 0xf0u, kBitsOfB = 0xccu, kBitsOfC = 0xaau;

template <unsigned kTable>
__device__ inline std::uint32_t combine_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#ifdef __CUDACC__
  std::uint32_t bits;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(bits) : "r"(a), "r"(b), "r"(c), "n"(kTable & 0xffu));
  return bits;
#else
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 8; ++i)
    if ((kTable >> i & 1u) != 0) bits |= ((i & 4u) != 0 ? a : ~a) & ((i & 2u) != 0 ? b : ~b) & ((i & 1u) != 0 ? c : ~c);
  return bits;
#endif
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
