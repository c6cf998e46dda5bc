// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace gradring::train {

/// The number in the bytes of `text` from `offset` on, which must be there.
template <std::unsigned_integral T>
T get_little_endian(std::string_view text, std::size_t offset) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;)
    value = static_cast<T>(static_cast<T>(value << 8) | static_cast<unsigned char>(text.substr(offset)[i]));
  return value;
}

template <std::unsigned_integral T>
void put_little_endian(std::string& text, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace gradring::train
