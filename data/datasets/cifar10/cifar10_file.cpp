// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/cifar10/cifar10_file.h"

#include <array>
#include <span>
#include <string>

#include "data/error.h"
#include "data/files/byte_source.h"

namespace gradring::data {
namespace {

constexpr std::size_t kRecordBytes = 1 + Cifar10Records::kPixels;
constexpr const char* kAdvice = "delete the file and get it again";

using Record = std::array<std::uint8_t, kRecordBytes>;

std::size_t count_records(const std::filesystem::path& path, std::uint64_t bytes) {
  if (bytes == 0) throw DataError(path, "is empty", kAdvice);
  if (bytes % kRecordBytes != 0)
    throw DataError(path,
                    "has " + std::to_string(bytes) + " bytes, which is no multiple of a record's " +
                        std::to_string(kRecordBytes) + ": it is cut short, or not CIFAR-10's binary form",
                    kAdvice);
  return bytes / kRecordBytes;
}

void check_label(const std::filesystem::path& path, std::size_t index, int label) {
  if (label < Cifar10Records::kClasses) return;
  throw DataError(path,
                  "gives record " + std::to_string(index) + " the label " + std::to_string(label) +
                      ", but labels go from 0 to " + std::to_string(Cifar10Records::kClasses - 1),
                  kAdvice);
}

/// Planes, one channel after the other, to pixels of three bytes.
void interleave(std::span<const std::uint8_t, Cifar10Records::kPixels> planes, std::uint8_t* pixels) {
  constexpr std::size_t kPlane = Cifar10Records::kSide * Cifar10Records::kSide;
  for (std::size_t i = 0; i < kPlane; ++i)
    for (std::size_t channel = 0; channel < Cifar10Records::kChannels; ++channel)
      pixels[i * Cifar10Records::kChannels + channel] = planes[channel * kPlane + i];
}

}  // namespace

std::size_t count_cifar10(const std::filesystem::path& path) {
  return count_records(path, open_plain(path)->most_bytes());
}

void append_cifar10(const std::filesystem::path& path, Cifar10Records& records) {
  const auto source = open_plain(path);
  const std::size_t count = count_records(path, source->most_bytes());
  std::size_t filled = records.pixels.size();
  records.pixels.resize(filled + count * Cifar10Records::kPixels);
  records.labels.reserve(records.labels.size() + count);
  Record record;
  for (std::size_t index = 0; index < count; ++index, filled += Cifar10Records::kPixels) {
    if (source->read(record) != record.size()) throw DataError(path, "became shorter while it was read", kAdvice);
    check_label(path, index, record[0]);
    records.labels.push_back(record[0]);
    interleave(std::span(record).subspan<1>(), records.pixels.data() + filled);
  }
}

}  // namespace gradring::data
