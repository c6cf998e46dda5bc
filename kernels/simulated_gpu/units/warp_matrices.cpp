// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/warp_matrices.h"

#include <cstring>

#include "kernels/simulated_gpu/units/transpose.h"

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kMatrixRows = 8;
static_assert(kMatrixRows * kMatrixRowBytes ==
              kLanes * sizeof(std::uint32_t));  // lanes 4 r to 4 r + 3: row r, in order

}  // namespace

void load_matrices(std::span<const std::byte* const> rows, bool transposes, std::span<const Row> d) {
  for (std::size_t matrix = 0; matrix < d.size(); ++matrix) {
    Elements elements[kMatrixRows];
    for (std::size_t row = 0; row < kMatrixRows; ++row) {
      std::memcpy(&elements[row], rows[kMatrixRows * matrix + row], kMatrixRowBytes);
    }
    if (transposes) transpose(elements);
    std::memcpy(d[matrix], elements, sizeof(elements));
  }
}

void store_matrices(std::span<const ConstRow> s, bool transposes, std::span<std::byte* const> rows) {
  for (std::size_t matrix = 0; matrix < s.size(); ++matrix) {
    Elements elements[kMatrixRows];
    std::memcpy(elements, s[matrix], sizeof(elements));
    if (transposes) transpose(elements);
    for (std::size_t row = 0; row < kMatrixRows; ++row) {
      std::memcpy(rows[kMatrixRows * matrix + row], &elements[row], kMatrixRowBytes);
    }
  }
}

}  // namespace gradring::simulated_gpu
