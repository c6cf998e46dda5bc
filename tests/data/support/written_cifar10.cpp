// SPDX-License-Identifier: Apache-2.0
#include "tests/data/support/written_cifar10.h"

namespace gradring::tests {
namespace {

constexpr std::size_t kPlane = 32 * 32;

std::uint8_t pixel(std::uint8_t label, std::size_t position, std::size_t channel) {
  return static_cast<std::uint8_t>(position + 85 * channel + label);
}

}  // namespace

Bytes cifar10_record(std::uint8_t label) {
  Bytes record = {label};
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t i = 0; i < kPlane; ++i) record.push_back(pixel(label, i, channel));
  return record;
}

Bytes cifar10_pixels(std::uint8_t label) {
  Bytes pixels;
  for (std::size_t i = 0; i < kPlane; ++i)
    for (std::size_t channel = 0; channel < 3; ++channel) pixels.push_back(pixel(label, i, channel));
  return pixels;
}

Bytes cifar10_bytes(std::size_t count, std::size_t first) {
  Bytes bytes;
  for (std::size_t i = first; i < first + count; ++i) {
    const Bytes record = cifar10_record(static_cast<std::uint8_t>(i % 10));
    bytes.insert(bytes.end(), record.begin(), record.end());
  }
  return bytes;
}

void write_cifar10(const TempFolder& folder, const std::filesystem::path& below, std::size_t records) {
  std::size_t first = 0;
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                           "data_batch_5.bin", "test_batch.bin"}) {
    folder.write(below / name, cifar10_bytes(records, first));
    first += records;
  }
}

}  // namespace gradring::tests
