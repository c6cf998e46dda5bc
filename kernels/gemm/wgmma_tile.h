// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/gemm/tiles.h"
#include "kernels/lib/bulk_tensor.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

/// A tile of a factor in shared memory, as TMA lays it down and wgmma takes it: boxes of 64 outer x 64 inner indices one
/// after the other, each with 64 swizzled rows of 128 bytes in memory's order. A box has one size however the factor is
/// stored, so the rest of the kernel need not know.
template <bool kAlong>
struct WgmmaTile {
  static constexpr int kBox = simt::kSwizzledRowWords;  // in both directions
  static constexpr int kElementsOfBox = kBox * kBox;
  static constexpr bool kTransposed = !kAlong;

  /// The boxes of `from`.
  template <class T>
  static simt::TensorMap map(const Matrix<T>& from) {
    return simt::make_tensor_map(simt::TensorBox{from.data, from.rows, from.columns, kBox});
  }

  /// Starts to copy `boxes` boxes along the outer index. One thread.
  template <class T>
  __device__ static void start(const simt::TensorMap& from, int first_outer, int first_inner, int boxes, T* tile,
                               lib::Mbarrier& landed) {
    for (int box = 0; box < boxes; ++box) {
      const int outer = first_outer + box * kBox;
      lib::bulk_load(tile + box * kElementsOfBox, from, kAlong ? outer : first_inner, kAlong ? first_inner : outer,
                     landed);
    }
  }

  /// 16 inner indices of the boxes from `tile` on.
  template <class T>
  __device__ static simt::MatrixDescriptor operand(const T* tile, int inner) {
    const T* first = tile + (kAlong ? inner : inner * kBox);
    return simt::MatrixDescriptor::of(lib::shared_address(first), kElementsOfBox * sizeof(T),
                                      simt::kSwizzlePatternBytes);
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
