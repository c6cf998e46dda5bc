// SPDX-License-Identifier: Apache-2.0
// The product as the first steps of the ladder see it: f32, one kernel for all layouts.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/error.h"
#include "kernels/ops/gemm/tiles.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

/// op(A) or op(B), whatever its layout: one of the steps is 1.
struct Strided {
  const float* data;
  int rows, columns;
  int row_step, column_step;

  __device__ float operator()(int row, int column) const {
    return data[std::int64_t{row} * row_step + std::int64_t{column} * column_step];
  }
  /// 0 outside.
  __device__ float value(int row, int column) const {
    return row < rows && column < columns ? (*this)(row, column) : 0.0f;
  }
};

struct StridedProblem {
  Strided a, b;  ///< [M, K], [K, N]
  Output<float> c;
  int k;

  explicit StridedProblem(const Problem<float>& problem, bool transpose_a, bool transpose_b)
      : a(strided(problem.a, transpose_a)), b(strided(problem.b, transpose_b)), c(problem.c), k(problem.k) {}

 private:
  static Strided strided(const Matrix<float>& stored, bool transpose) {
    if (transpose) return {stored.data, stored.columns, stored.rows, 1, stored.columns};
    return {stored.data, stored.rows, stored.columns, stored.columns, 1};
  }
};

/// Variant::supports and Variant::computes.
inline bool is_f32(DType dtype) { return dtype == DType::f32; }
inline bool supports_f32(const Device& device, DType dtype) {
  return is_f32(dtype) && lib::supports_cuda_floating(device, dtype);
}

/// Launches the kernel with a block of `threads` for each tile of C. f32 alone.
template <auto kKernel>
void run_strided(Stream& stream, const char* name, const Args& args, int tile_rows, int tile_columns, dim3 threads) {
  check_args(args);
  check(is_f32(args.dtype), [&] {
    return "gemm: dtype is " + std::string(name_of(args.dtype)) + ", expected f32, the type of variant " + name;
  });
  if (args.m == 0 || args.n == 0) return;
  reject_row_sums(name, args);
  const Problem<float> problem(args);
  simt::launch<kKernel>(stream, {.grid = problem.tiles(tile_rows, tile_columns), .block = threads},
                        StridedProblem(problem, args.transpose_a, args.transpose_b));
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
