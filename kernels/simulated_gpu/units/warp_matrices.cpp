// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/warp_matrices.h"

#include <cstring>

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kMatrixRows = 8;

}  // namespace

void load_matrices(std::span<const std::byte* const> rows, bool transposes, std::span<const Row> d) {
  for (std::size_t matrix = 0; matrix < d.size(); ++matrix) {
    std::uint16_t elements[kMatrixRows][kMatrixRows];
    for (std::size_t row = 0; row < kMatrixRows; ++row)
      std::memcpy(elements[row], rows[kMatrixRows * matrix + row], kMatrixRowBytes);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int group = lane / 4;
      const int first = lane % 4 * 2;
      const std::uint32_t low = transposes ? elements[first][group] : elements[group][first];
      const std::uint32_t high = transposes ? elements[first + 1][group] : elements[group][first + 1];
      d[matrix][lane] = low | high << 16;
    }
  }
}

void store_matrices(std::span<const ConstRow> s, bool transposes, std::span<std::byte* const> rows) {
  for (std::size_t matrix = 0; matrix < s.size(); ++matrix) {
    std::uint16_t elements[kMatrixRows][kMatrixRows];
    for (int lane = 0; lane < kLanes; ++lane) {
      const int group = lane / 4;
      const int first = lane % 4 * 2;
      (transposes ? elements[first][group] : elements[group][first]) = static_cast<std::uint16_t>(s[matrix][lane]);
      (transposes ? elements[first + 1][group] : elements[group][first + 1]) =
          static_cast<std::uint16_t>(s[matrix][lane] >> 16);
    }
    for (std::size_t row = 0; row < kMatrixRows; ++row)
      std::memcpy(rows[kMatrixRows * matrix + row], elements[row], kMatrixRowBytes);
  }
}

}  // namespace gradring::simulated_gpu
