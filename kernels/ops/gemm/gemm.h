// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/lib/partial_sums.h"
#include "kernels/lib/variant.h"

namespace gradring::kernels::gemm {

/// Matrix product: C = op(A) op(B)  (+ C if `accumulate`), op(X) = X or its transpose; and what a layer makes of C, and
/// of A, on the way.
///   C[i,j]      = f(sum_l op(A)[i,l] op(B)[l,j]  (+ C[i,j])  + bias[j]),   f(x) = max(x, 0) with `relu`, else x
///   row_sums[i] = sum_l op(A)[i,l]  (+ row_sums[i])
///
/// Shapes    op(A): [m, k], op(B): [k, n], C: [m, n], bias: [n], row_sums: [m]; m, n, k >= 0. All row-major and
///           contiguous as stored: A is [m, k], or [k, m] if transpose_a; B is [k, n], or [n, k] if transpose_b. With
///           k = 0 the product is 0.
/// Types     A, B and bias: f32, f16 or bf16, equal (`dtype`); C: f32 or the type of A and B (`c_dtype`); row_sums and
///           all sums: f32.
/// Aliasing  C and row_sums overlap nothing; A may be B. bias and row_sums may be null: they are left out.
/// Order     enqueued on the stream; returns at once. No elements of C: nothing happens.
/// Errors    InvalidArgument if an extent is negative, a pointer null, a type not one of those above, or row_sums wanted
///           of a variant that does not compute them.
/// Numerics  deterministic; error below (k + 2) * 2^-24 * (sum |a * b| + |bias| + |C|), and one rounding to c_dtype;
///           row sums likewise, with b = 1. A GPU's tensor cores may cut sums off where others round them: twice that.
///           With `relu`, NaN stays NaN, as in PyTorch.
/// Cost      2 * m * n * k floating-point operations.
/// Example   tests/kernels/ops/gemm_test.cpp
///
/// A linear layer y = x W^T with W: [out, in] is {m = batch, n = out, k = in, transpose_b}; its dx = dy W is {m =
/// batch, n = in, k = out}; its dW = dy^T x is {m = out, n = in, k = batch, transpose_a, c_dtype = f32}.
struct Args {
  DType dtype = DType::f32;
  DType c_dtype = DType::f32;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  bool accumulate = false;
  const void* bias = nullptr;
  bool relu = false;
  float* row_sums = nullptr;
  void* workspace = nullptr;            ///< Variant::workspace_bytes bytes, aligned to 64
  PartialSums* partial_sums = nullptr;  ///< of an f32 C without accumulate, bias and ReLU
};

void check_args(const Args& args);
/// For variants that do not compute them.
void reject_row_sums(std::string_view variant, const Args& args);
void reference_run(const Args& args);

struct Variant {
  std::string_view name;
  void (*run)(Stream&, const Args&);
  bool (*supports)(const Device&, DType);    ///< where it is chosen
  bool (*computes)(DType) = nullptr;         ///< what it is right for on any device, if that is more
  std::size_t workspace_bytes = 0;           ///< enough for any product
  bool (*sums_rows)(const Args&) = nullptr;  ///< whether it computes the row_sums of this product; null: of none
};

}  // namespace gradring::kernels::gemm
