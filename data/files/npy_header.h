// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::data {

// A .npy file: the magic, two bytes of the version, the length of the header in 2 bytes (version 1) or 4, the header,
// the values.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";
inline constexpr std::size_t kNpyVersionEnd = 8;
inline constexpr std::size_t kLargestNpyHeader = 64 * 1024;

/// The three keys of the header of a .npy file.
struct NpyHeader {
  std::string descr;  ///< type of the values: "<f4", "|u1"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Parses the header, a Python dictionary: its three keys in any order, each once, and nothing else. Empty if it is
/// anything else.
///
/// Source    the documentation of numpy.lib.format.
std::optional<NpyHeader> parse_npy_header(std::string_view text);

}  // namespace gradring::data
