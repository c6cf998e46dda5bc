// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/files/byte_source.h"
#include "data/files/npy_header.h"

namespace gradring::data {

/// A .npy file of images or labels: its header when it is opened, its values on request, converted piece by piece.
///
/// Errors    DataError that names the file: it cannot be read, is not a .npy file, is longer or shorter than its header
///           says, holds values of another type, or in column-major order.
/// Source    the documentation of numpy.lib.format.
class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<std::int64_t>& shape() const { return header_.shape; }
  std::int64_t size() const { return count_; }

  // Each is to be called at most once, and one of them only.

  /// uint8 as they are; float32 and float64 from 0 to 1 as round(255 * x).
  ///
  /// Errors    also DataError for a value that is not from 0 to 1, with the index of its sample.
  /// Cost      memory: a byte for each value.
  std::vector<std::uint8_t> read_pixels();
  /// Integers of any type.
  ///
  /// Errors    also DataError for a value that is not from 0 to 2^31 - 1.
  std::vector<std::int32_t> read_labels();

 private:
  /// Calls take(bytes) for pieces of whole values, in order.
  template <class Take>
  void read_pieces(Take take);
  void read_header();
  [[noreturn]] void fail(const std::string& found, const std::string& advice) const;

  std::filesystem::path path_;
  std::unique_ptr<ByteSource> source_;
  NpyHeader header_;
  std::int64_t count_ = 0;  // values
  std::size_t value_bytes_ = 0;
};

/// "(60000, 28, 28)", as NumPy shows it.
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace gradring::data
