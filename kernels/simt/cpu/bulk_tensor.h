// SPDX-License-Identifier: Apache-2.0
// What kernels/lib/bulk_tensor.h means on the CPU. Instrumented code: the thread that starts a copy makes it at once.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/runtime/error.h"
#include "kernels/simt/cpu/mbarrier.h"
#include "kernels/simt/cpu/shared_address.h"
#include "kernels/simt/tensor_box.h"

namespace gradring::simt {

/// What the driver makes of a TensorBox is opaque on a GPU; here it is the thing itself.
using TensorMap = TensorBox;

/// Errors    InvalidArgument where cuTensorMapEncodeTiled would refuse.
inline TensorMap make_tensor_map(const TensorBox& box) {
  const auto aligned = [](std::uintptr_t value) { return value % kTensorAlignment == 0; };
  check(aligned(reinterpret_cast<std::uintptr_t>(box.data)), "a tensor map of data that is not aligned to 16");
  check(aligned(static_cast<std::uintptr_t>(box.columns) * 2), "a tensor map of rows not of 16 bytes' multiple");
  check(box.rows > 0 && box.columns > 0, "a tensor map of nothing");
  check(box.box_rows > 0 && box.box_rows <= 256, "a tensor map whose boxes do not have 1 to 256 rows");
  return box;
}

namespace detail {

inline void load_box(void* shared, const TensorMap& map, int column, int row, const std::uint64_t& barrier, Site site) {
  const std::uint32_t first = shared_address(shared);
  if (first % kSharedAlignmentOfBoxes != 0)
    fail_kernel(site, "the address in shared memory of a box is not a multiple of 128 bytes");
  for (int i = 0; i < map.box_rows; ++i)
    for (int j = 0; j < TensorMap::kBoxColumns; ++j) {
      const bool inside = row + i >= 0 && row + i < map.rows && column + j >= 0 && column + j < map.columns;
      const std::uint16_t word =
          inside ? static_cast<const std::uint16_t*>(map.data)[(row + std::int64_t{i}) * map.columns + column + j] : 0;
      const std::uint32_t at =
          first + static_cast<std::uint32_t>(i) * kSwizzledRowBytes + static_cast<std::uint32_t>(j) * 2;
      std::memcpy(at_shared_address(swizzle_128(at), sizeof word, site), &word, sizeof word);
    }
  mbarrier_land("bulk_load", touched(barrier), map.box_bytes(), site);
}

}  // namespace detail
}  // namespace gradring::simt
