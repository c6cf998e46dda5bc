// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace gradring::kernels {

/// Philox4x32-10: four random words as a pure function of a 64-bit key and a 128-bit counter, so that element i of a
/// tensor gets the same number on any device, in any order, on any rank.
///
/// Numerics  bit-exact against the known-answer vectors of Random123 (tests/kernels/runtime).
/// Cost      20 multiplications of 32 x 32 bits for four words.
/// Source    Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                              std::uint64_t counter_high = 0) {
  std::uint32_t key0 = static_cast<std::uint32_t>(key);
  std::uint32_t key1 = static_cast<std::uint32_t>(key >> 32);
  std::array<std::uint32_t, 4> words = {
      static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
      static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = 0xD2511F53ull * words[0];
    const std::uint64_t product1 = 0xCD9E8D57ull * words[2];
    words = {static_cast<std::uint32_t>(product1 >> 32) ^ words[1] ^ key0, static_cast<std::uint32_t>(product1),
             static_cast<std::uint32_t>(product0 >> 32) ^ words[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return words;
}

/// A float in [0, 1) from the upper 24 bits of a word.
constexpr float uniform_from(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace gradring::kernels
