// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "data/files/byte_source.h"

namespace gradring::data {

/// What an IDX file of bytes holds: row-major, the last extent innermost.
struct IdxArray {
  std::vector<std::int64_t> extents;
  std::vector<std::uint8_t> values;
};

/// An IDX file of unsigned bytes, plain or .gz: two zero bytes, 0x08 for unsigned bytes, the number of extents, each extent as
/// 32 bits big-endian, the values.
///
/// Errors    DataError, naming the file and what to do, if it cannot be opened, is not IDX or of another kind, is
///           shorter or longer than its header says, or is a damaged .gz.
/// Source    the description on the MNIST page (LeCun, Cortes, Burges 1998).
class IdxFile {
 public:
  /// Opens a file with `rank` extents and reads its header; refuses one that promises more than a file of its size can hold.
  IdxFile(const std::filesystem::path& path, int rank);

  const std::vector<std::int64_t>& extents() const { return extents_; }
  /// To be called once.
  ///
  /// Cost      takes memory in steps, as the values come: at most about three times theirs, whatever the header promises. A .gz
  ///           is inflated no further than one byte past them.
  std::vector<std::uint8_t> read_values();

 private:
  std::array<std::uint8_t, 4> read_word();
  void check_magic(int rank);
  std::int64_t read_extent();
  std::uint64_t count_values() const;

  std::filesystem::path path_;
  std::unique_ptr<ByteSource> source_;
  std::vector<std::int64_t> extents_;
  std::uint64_t count_ = 0;  ///< of the values
};

/// All of such a file.
IdxArray read_idx(const std::filesystem::path& path, int rank);

}  // namespace gradring::data
