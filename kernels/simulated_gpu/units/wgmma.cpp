// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/wgmma.h"

#include <bit>

namespace gradring::simulated_gpu {
namespace {

using Elements = std::array<std::uint16_t, 8>;

Elements elements_of(const Chunk& chunk, std::uint16_t flip) {
  auto elements = std::bit_cast<Elements>(chunk);
  for (std::uint16_t& element : elements) element ^= flip;
  return elements;
}

/// What negates an element of f16 or bf16 by exclusive or.
std::uint16_t sign_flip(bool negates) { return negates ? 0x8000 : 0; }

}  // namespace

void read_chunks(Half type, Major major, bool negates, std::span<const Chunk> chunks, LeftMatrix& a) {
  std::uint16_t bits[16][16];
  for (std::size_t i = 0; i < 32; ++i) {
    const Elements elements = elements_of(chunks[i], sign_flip(negates));
    for (std::size_t j = 0; j < 8; ++j) {
      if (major == Major::k) {
        bits[i / 2][i % 2 * 8 + j] = elements[j];
      } else {
        bits[i % 2 * 8 + j][i / 2] = elements[j];
      }
    }
  }
  to_f32(type, bits[0], a.values[0], 256);
}

void read_chunks(Half type, Major major, bool negates, int columns, std::span<const Chunk> chunks, RightMatrix& b) {
  std::uint16_t bits[16][kMostColumns];
  const auto width = static_cast<std::size_t>(columns);
  const std::uint16_t flip = sign_flip(negates);
  if (major == Major::k) {
    for (std::size_t n = 0; n < width; ++n) {
      for (std::size_t half = 0; half < 2; ++half) {
        const Elements elements = elements_of(chunks[2 * n + half], flip);
        for (std::size_t j = 0; j < 8; ++j) bits[8 * half + j][n] = elements[j];
      }
    }
  } else {
    for (std::size_t k = 0; k < 16; ++k) {
      for (std::size_t block = 0; block < width / 8; ++block) {
        const Elements elements = elements_of(chunks[k * (width / 8) + block], flip);
        for (std::size_t j = 0; j < 8; ++j) bits[k][8 * block + j] = elements[j];
      }
    }
  }
  for (std::size_t k = 0; k < 16; ++k) to_f32(type, bits[k], b.values[k], width);
}

}  // namespace gradring::simulated_gpu
