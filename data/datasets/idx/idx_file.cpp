// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/idx/idx_file.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <span>
#include <string>

#include "data/error.h"

namespace gradring::data {
namespace {

constexpr const char* kAdvice = "delete the file and get it again";

std::string hex(const std::array<std::uint8_t, 4>& bytes) {
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), "%02x %02x %02x %02x", bytes[0], bytes[1], bytes[2], bytes[3]);
  return text.data();
}

}  // namespace

IdxFile::IdxFile(const std::filesystem::path& path, int rank) : path_(path), source_(open_plain_or_gzip(path)) {
  check_magic(rank);
  for (int axis = 0; axis < rank; ++axis) extents_.push_back(read_extent());
  count_ = count_values();
}

void IdxFile::check_magic(int rank) {
  const std::array<std::uint8_t, 4> expected = {0, 0, 8, static_cast<std::uint8_t>(rank)};
  const auto found = read_word();
  if (found != expected)
    throw DataError(path_, "starts with " + hex(found) + ", not with " + hex(expected),
                    "this is not the IDX file that its name promises (" + std::string(rank == 3 ? "images" : "labels") +
                        "): check what was downloaded");
}

std::int64_t IdxFile::read_extent() {
  std::int64_t extent = 0;
  for (std::uint8_t byte : read_word()) extent = extent << 8 | byte;
  return extent;
}

std::array<std::uint8_t, 4> IdxFile::read_word() {
  std::array<std::uint8_t, 4> word{};
  if (source_->read(word) != word.size()) throw DataError(path_, "ends inside its header", kAdvice);
  return word;
}

/// The product of the extents.
std::uint64_t IdxFile::count_values() const {
  std::uint64_t count = 1;
  for (const std::int64_t extent : extents_) {
    const auto factor = static_cast<std::uint64_t>(extent);
    const bool overflows = factor != 0 && count > std::numeric_limits<std::uint64_t>::max() / factor;
    count = overflows ? std::numeric_limits<std::uint64_t>::max() : count * factor;
  }
  if (count > source_->most_bytes())
    throw DataError(path_, "ends before the bytes that its header promises: far more than a file of this size can hold",
                    kAdvice);
  return count;
}

std::vector<std::uint8_t> IdxFile::read_values() {
  constexpr std::size_t kFirstStep = 16u << 20;
  std::vector<std::uint8_t> values;
  while (values.size() < count_) {
    const std::size_t filled = values.size();
    const std::size_t step = std::min(count_ - filled, std::max(kFirstStep, filled));
    values.resize(filled + step);
    if (source_->read(std::span(values).subspan(filled)) != step)
      throw DataError(path_, "ends before the " + std::to_string(count_) + " bytes that its header promises", kAdvice);
  }
  std::array<std::uint8_t, 1> more{};
  if (source_->read(more) > 0)
    throw DataError(path_, "goes on after the " + std::to_string(count_) + " bytes that its header promises", kAdvice);
  return values;
}

IdxArray read_idx(const std::filesystem::path& path, int rank) {
  IdxFile file(path, rank);
  return {.extents = file.extents(), .values = file.read_values()};
}

}  // namespace gradring::data
