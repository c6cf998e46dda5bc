// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/simulated_gpu/units/fragment.h"

namespace gradring::simulated_gpu {

/// The types of A and B that tensor cores multiply. f64 has 64-bit registers, the others are packed in 32 bits.
enum class Element : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, s4, u4, f64 };

constexpr int bits_of(Element element) {
  switch (element) {
    case Element::f16:
    case Element::bf16: return 16;
    case Element::tf32: return 32;
    case Element::s4:
    case Element::u4: return 4;
    case Element::f64: return 64;
    default: return 8;
  }
}
constexpr bool is_integer(Element element) { return element >= Element::s8 && element <= Element::u4; }

/// The values of the lower bits of a word. Of tf32, the lower 13 bits are not looked at.
float float_of(Element element, std::uint32_t bits);
std::int32_t integer_of(Element element, std::uint32_t bits);

/// Element `i` of an array in memory, not f64.
std::uint32_t element_at(Element element, const std::byte* bytes, std::size_t i);

/// Of A, `rows` (8 or 16) x K, in registers of `elements` (32 bits / element; f64: 1) each: where element j of register
/// r of a lane is. All shapes of mma but f16 m8n8k4, and a warp's rows of wgmma, follow this rule.
///
/// Source    PTX ISA 9.0: 9.7.14.5.2 to 9.7.14.5.13 (m8n8k4 f64, m8n8k16, m8n8k32, m16n8k4 to m16n8k64), 9.7.15.5.1.1.
constexpr Position register_position_in_a(int rows, int elements, int lane, int r, int j) {
  const int halves = rows / 8;
  return {.row = lane / 4 + r % halves * 8, .column = lane % 4 * elements + j + r / halves * 4 * elements};
}

/// Of B, K x 8; the row is k.
constexpr Position register_position_in_b(int elements, int lane, int r, int j) {
  return {.row = lane % 4 * elements + j + r * 4 * elements, .column = lane / 4};
}

}  // namespace gradring::simulated_gpu
