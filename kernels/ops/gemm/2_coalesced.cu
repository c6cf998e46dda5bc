// SPDX-License-Identifier: Apache-2.0
// Idea: neighbouring threads compute neighbouring elements of a row of C, so that a warp's accesses are neighbours.
// Mapping: as before, but threadIdx.x is the column: each block of 32 x 8 threads computes 8 rows and 32 columns.
// Traffic and bound: still two loads for each multiply-add. In A B a warp loads one number of A for all its threads,
//   and 32 neighbours of B: 4 sectors. Bound by the loads that are issued.
// Gains over the step before: sectors per load of A B: 16.5 on average become 2.5.
// Still slow because: each number is loaded again for each element of C that it is needed for. In A B^T (y = x W^T)
//   neighbours of C need rows of B, so a load touches 32 sectors as before.
// Limits: as before.

#include "kernels/ops/gemm/strided.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kRows = 8;
constexpr int kColumns = 32;

__global__ void gemm_run_coalesced_kernel(SIMT_GRID_CONST(StridedProblem) problem) {
  const int row = static_cast<int>(blockIdx.x * kRows + threadIdx.y);
  const int column = static_cast<int>(blockIdx.y * kColumns + threadIdx.x);
  if (row >= problem.c.rows || column >= problem.c.columns) return;
  float sum = 0;
  for (int k = 0; k < problem.k; ++k) sum += problem.a(row, k) * problem.b(k, column);
  problem.c.put(row, column, sum);
}

void run(Stream& stream, const Args& args) {
  run_strided<gemm_run_coalesced_kernel>(stream, "coalesced", args, kRows, kColumns, dim3(kColumns, kRows));
}

}  // namespace

Variant coalesced() { return {"coalesced", run, supports_f32, is_f32}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
