// SPDX-License-Identifier: Apache-2.0
// Idea: the definition. Each thread computes one element of C, the dot product of a row of op(A) and a column of op(B).
// Mapping: each block of 32 x 8 threads computes 32 rows and 8 columns of C. threadIdx.x, by which threads are
//   neighbours in a warp, is the row.
// Traffic and bound: two loads for each multiply-add. A warp has 32 rows and one column: in A B, its load of A touches
//   32 sectors for 32 numbers, as its store to C does; its load of B is one number for all. Bound by these loads.
// Still slow because: neighbouring threads do not access neighbouring addresses.
// Limits: f32; m, n, k <= 2^30, 65,535 blocks of columns.

#include "kernels/ops/gemm/strided.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kRows = 32;
constexpr int kColumns = 8;

__global__ void gemm_run_naive_kernel(SIMT_GRID_CONST(StridedProblem) problem) {
  const int row = static_cast<int>(blockIdx.x * kRows + threadIdx.x);
  const int column = static_cast<int>(blockIdx.y * kColumns + threadIdx.y);
  if (row >= problem.c.rows || column >= problem.c.columns) return;
  float sum = 0;
  for (int k = 0; k < problem.k; ++k) sum += problem.a(row, k) * problem.b(k, column);
  problem.c.put(row, column, sum);
}

void run(Stream& stream, const Args& args) {
  run_strided<gemm_run_naive_kernel>(stream, "naive", args, kRows, kColumns, dim3(kRows, kColumns));
}

}  // namespace

Variant naive() { return {"naive", run, supports_f32, is_f32}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
