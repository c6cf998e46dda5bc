// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/element.h"

#include <array>
#include <bit>
#include <cstring>

#include "kernels/simulated_gpu/units/half.h"
#include "kernels/simulated_gpu/units/number_format.h"

namespace gradring::simulated_gpu {
namespace {

std::array<float, 256> all_of(const NumberFormat& format) {
  std::array<float, 256> values{};
  for (unsigned bits = 0; bits < values.size(); ++bits) values[bits] = static_cast<float>(number_of(format, bits));
  return values;
}

}  // namespace

float float_of(Element element, std::uint32_t bits) {
  static const std::array<float, 256> kOfE4M3 = all_of(kE4M3);
  static const std::array<float, 256> kOfE5M2 = all_of(kE5M2);
  switch (element) {
    case Element::f16: return f16_to_f32(static_cast<std::uint16_t>(bits));
    case Element::bf16: return bf16_to_f32(static_cast<std::uint16_t>(bits));
    case Element::tf32: return std::bit_cast<float>(bits & ~std::uint32_t{0x1FFF});
    case Element::e4m3: return kOfE4M3[bits & 0xFF];
    case Element::e5m2: return kOfE5M2[bits & 0xFF];
    default: return static_cast<float>(integer_of(element, bits));
  }
}

std::int32_t integer_of(Element element, std::uint32_t bits) {
  switch (element) {
    case Element::s8: return static_cast<std::int8_t>(bits);
    case Element::u8: return static_cast<std::uint8_t>(bits);
    case Element::s4: return static_cast<std::int32_t>(bits << 28) >> 28;
    default: return static_cast<std::int32_t>(bits & 0xF);
  }
}

std::uint32_t element_at(Element element, const std::byte* bytes, std::size_t i) {
  const auto width = static_cast<std::size_t>(bits_of(element));
  if (width == 4) return static_cast<std::uint32_t>(bytes[i / 2]) >> (4 * (i % 2)) & 0xF;
  std::uint32_t value = 0;
  std::memcpy(&value, bytes + i * width / 8, width / 8);
  return value;
}

}  // namespace gradring::simulated_gpu
