// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace gradring::tests {

/// The parts of a PNG, whether or not they fit together.
struct WrittenPng {
  enum Colour : std::uint8_t { grey = 0, rgb = 2, indexed = 3, grey_alpha = 4, rgba = 6 };

  std::uint32_t width = 1, height = 1;
  std::uint8_t bits = 8;
  Colour colour = grey;
  Bytes rows;          ///< packed as the bits and colours say, without the filter bytes
  Bytes palette = {};  ///< red, green, blue, ...
  Bytes transparency = {};

  std::size_t row_bytes() const;
  /// The file's bytes.
  Bytes bytes() const;
};

/// One chunk: length, type, data, checksum.
Bytes png_chunk(const std::string& type, const Bytes& data);

}  // namespace gradring::tests
