// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/wgmma.h"

#include <bit>
#include <cstring>

#include "kernels/simulated_gpu/units/transpose.h"

namespace gradring::simulated_gpu {
namespace {

/// `flip` negates elements of f16 or bf16 by exclusive or.
Elements elements_of(const Chunk& chunk, std::uint16_t flip) { return std::bit_cast<Elements>(chunk) ^ flip; }

std::uint16_t sign_flip(bool negates) { return negates ? 0x8000 : 0; }

/// An operand of 8 `blocks` rows or columns (mn) as rows of k: bits[k][mn].
template <std::size_t kWidth>
void read_rows_of_k(Major major, bool negates, std::size_t blocks, std::span<const Chunk> chunks,
                    std::uint16_t (&bits)[16][kWidth]) {
  const std::uint16_t flip = sign_flip(negates);
  if (major == Major::mn) {
    for (std::size_t k = 0; k < 16; ++k) {
      for (std::size_t block = 0; block < blocks; ++block) {
        const Elements elements = elements_of(chunks[blocks * k + block], flip);
        std::memcpy(&bits[k][8 * block], &elements, sizeof(elements));
      }
    }
    return;
  }
  for (std::size_t i = 0; i < 2 * blocks; ++i) {
    const std::size_t block = i / 2;
    const std::size_t half = i % 2;
    Elements rows[8];
    for (std::size_t mn = 0; mn < 8; ++mn) rows[mn] = elements_of(chunks[2 * (8 * block + mn) + half], flip);
    transpose(rows);
    for (std::size_t k = 0; k < 8; ++k) std::memcpy(&bits[8 * half + k][8 * block], &rows[k], sizeof(rows[k]));
  }
}

}  // namespace

void read_chunks(Half type, Major major, bool negates, std::span<const Chunk> chunks, LeftMatrix& a) {
  std::uint16_t bits[16][16];
  float by_k[16][16];
  read_rows_of_k(major, negates, 2, chunks, bits);
  to_f32(type, bits[0], by_k[0], 256);
  float elements[16][16];
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) elements[row][k] = by_k[k][row];
  }
  set_elements(elements, a);
}

void read_chunks(Half type, Major major, bool negates, int columns, std::span<const Chunk> chunks, RightMatrix& b) {
  std::uint16_t bits[16][kMostColumns];
  const auto width = static_cast<std::size_t>(columns);
  read_rows_of_k(major, negates, width / 8, chunks, bits);
  for (std::size_t k = 0; k < 16; ++k) to_f32(type, bits[k], b.values[k], width);
}

}  // namespace gradring::simulated_gpu
