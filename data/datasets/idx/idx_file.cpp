// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/idx/idx_file.h"

#include <array>
#include <cstdio>
#include <limits>
#include <string>

#include "data/error.h"
#include "data/files/byte_source.h"

namespace gradring::data {
namespace {

constexpr const char* kAdvice = "delete the file and get it again";

std::string hex(const std::array<std::uint8_t, 4>& bytes) {
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), "%02x %02x %02x %02x", bytes[0], bytes[1], bytes[2], bytes[3]);
  return text.data();
}

/// Reads the header and the values of one file.
class IdxReader {
 public:
  explicit IdxReader(const std::filesystem::path& path) : path_(path), source_(open_plain_or_gzip(path)) {}

  void check_magic(int rank) {
    const std::array<std::uint8_t, 4> expected = {0, 0, 8, static_cast<std::uint8_t>(rank)};
    const auto found = read_word();
    if (found != expected)
      throw DataError(path_, "starts with " + hex(found) + ", not with " + hex(expected),
                      "this is not the IDX file that its name promises (" +
                          std::string(rank == 3 ? "images" : "labels") + "): check what was downloaded");
  }

  std::int64_t read_extent() {
    std::int64_t extent = 0;
    for (std::uint8_t byte : read_word()) extent = extent << 8 | byte;
    return extent;
  }

  std::vector<std::uint8_t> read_values(const std::vector<std::int64_t>& extents) {
    const std::uint64_t count = value_count(extents);
    std::vector<std::uint8_t> values(count);
    if (source_->read(values) != count)
      throw DataError(path_, "ends before the " + std::to_string(count) + " bytes that its header promises", kAdvice);
    std::array<std::uint8_t, 1> more{};
    if (source_->read(more) > 0)
      throw DataError(path_, "goes on after the " + std::to_string(count) + " bytes that its header promises", kAdvice);
    return values;
  }

 private:
  std::array<std::uint8_t, 4> read_word() {
    std::array<std::uint8_t, 4> word{};
    if (source_->read(word) != word.size()) throw DataError(path_, "ends inside its header", kAdvice);
    return word;
  }

  /// The product of the extents, or an error if no file of this size can hold so much.
  std::uint64_t value_count(const std::vector<std::int64_t>& extents) const {
    std::uint64_t count = 1;
    for (std::int64_t extent : extents) {
      const auto factor = static_cast<std::uint64_t>(extent);
      if (factor != 0 && count > std::numeric_limits<std::uint64_t>::max() / factor) return too_large();
      count *= factor;
    }
    return count <= source_->most_bytes() ? count : too_large();
  }

  [[noreturn]] std::uint64_t too_large() const {
    throw DataError(path_, "ends before the bytes that its header promises: far more than a file of this size can hold",
                    kAdvice);
  }

  std::filesystem::path path_;
  std::unique_ptr<ByteSource> source_;
};

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, int rank) {
  IdxReader reader(path);
  reader.check_magic(rank);
  IdxArray array;
  for (int axis = 0; axis < rank; ++axis) array.extents.push_back(reader.read_extent());
  array.values = reader.read_values(array.extents);
  return array;
}

}  // namespace gradring::data
