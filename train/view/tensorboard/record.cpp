// SPDX-License-Identifier: Apache-2.0
#include "train/view/tensorboard/record.h"

#include <array>

namespace gradring::train::tensorboard {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = crc_table();

template <class Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string masked_crc(std::string_view bytes) {
  constexpr std::uint32_t kMaskDelta = 0xA282EAD8;
  const std::uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + kMaskDelta);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char each : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(each)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string record_of(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  std::string record = length + masked_crc(length);
  record += data;
  return record + masked_crc(data);
}

}  // namespace gradring::train::tensorboard
