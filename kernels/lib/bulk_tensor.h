// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/lib/mbarrier.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/site.h"
#include "kernels/simt/tensor_box.h"

#ifdef __CUDACC__
#include "kernels/simt/cuda/tensor_map.h"
#else
#include "kernels/simt/cpu/bulk_tensor.h"
#endif

/// TMA: the copy engine of sm_90, which brings a box of a matrix to shared memory without a thread computing an address.
///
/// On the host, simt::make_tensor_map(simt::TensorBox{...}) describes the matrix; a kernel takes the result as
/// SIMT_GRID_CONST(simt::TensorMap).
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Starts to copy the box of `map` whose first element is at (row, column) to `shared`, and lets its bytes land at
/// `landed`. What reaches past the matrix, on any side, becomes 0, and counts as bytes. The rows of the box, 128 bytes
/// each, are swizzled as simt/warpgroup_layout.h says.
///
/// Aliasing  `shared` is a multiple of 128, and of 1,024 for who wants to know where its rows lie.
/// Order     the bytes are there for who has waited for `landed`; on the CPU they are at once, but only those who wait are
///           ordered behind it. Earlier reads of that place by others need a barrier, too.
/// Threads   one.
/// Errors    on the CPU simt::Error: an address that is not aligned, or not in dynamic shared memory; bytes that the barrier
///           does not expect.
/// Source    PTX ISA, cp.async.bulk.tensor (compute capability 9.0 and later).
/// Example   tests/kernels/lib/bulk_tensor_test.cpp
__device__ inline void bulk_load(void* shared, const simt::TensorMap& map, int row, int column, Mbarrier& landed,
                                 [[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          static_cast<unsigned>(__cvta_generic_to_shared(shared))),
      "l"(&map), "r"(column), "r"(row), "r"(landed.address())
      : "memory");
#else
  simt::detail::load_box(shared, map, column, row, landed.word, site);
#endif
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
