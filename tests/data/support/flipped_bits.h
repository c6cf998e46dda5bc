// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "data/files/byte_source.h"
#include "tests/support/temp_folder.h"

namespace gradring::tests {

/// Calls read(copy) for `count` copies of a file with one random bit flipped in each.
///
/// Returns   how many of them it rejects with a DataError; it must throw nothing else.
template <class Read>
int rejected_with_flipped_bits(const Bytes& whole, int count, std::mt19937& random, Read read) {
  int rejected = 0;
  for (int i = 0; i < count; ++i) {
    Bytes flipped = whole;
    const std::size_t bit = random() % (8 * whole.size());
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    try {
      read(flipped);
    } catch (const data::DataError&) {
      ++rejected;
    }
  }
  return rejected;
}

}  // namespace gradring::tests
