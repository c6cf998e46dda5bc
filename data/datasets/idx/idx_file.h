// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace gradring::data {

/// What an IDX file of bytes holds: row-major, the last extent innermost.
struct IdxArray {
  std::vector<std::int64_t> extents;
  std::vector<std::uint8_t> values;
};

/// Reads an IDX file of unsigned bytes with `rank` extents, plain or .gz: two zero bytes, 0x08 for unsigned bytes, the
/// number of extents, each extent as 32 bits big-endian, the values.
///
/// Errors    DataError, naming the file and what to do, if it cannot be opened, is not IDX or of another kind, is
///           shorter or longer than its header says, or is a damaged .gz.
/// Cost      allocates what the header says, after a check that a file of this size can hold so much; a .gz is inflated
///           no further than one byte past it.
/// Source    the description on the MNIST page (LeCun, Cortes, Burges 1998).
IdxArray read_idx(const std::filesystem::path& path, int rank);

}  // namespace gradring::data
