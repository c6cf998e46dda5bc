// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train {

/// The three keys of a .npy header.
struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Parses the dictionary of a .npy header: its three keys in any order, each once, and nothing else. It is Python's text
/// of a dictionary, of which this takes what NumPy writes. Empty if it is anything else.
std::optional<NpyHeader> parse_npy_header(std::string_view text);

}  // namespace gradring::train
