// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/lib/partial_sums.h"
#include "kernels/lib/variant.h"

namespace gradring::kernels::gemm {

/// Matrix product: C = op(A) op(B)  (+ C if `accumulate`), op(X) = X or its transpose.
///
/// Shapes    op(A): [m, k], op(B): [k, n], C: [m, n]; m, n, k >= 0. All row-major and contiguous as stored:
///           A is [m, k], or [k, m] if transpose_a; B is [k, n], or [n, k] if transpose_b. With k = 0 the product is 0.
/// Types     A and B: f32, f16 or bf16, equal (`dtype`); C: f32 or the type of A and B (`c_dtype`); sums in f32.
/// Aliasing  C overlaps nothing; A may be B.
/// Order     enqueued on the stream; returns at once. No elements of C: nothing happens.
/// Errors    InvalidArgument if an extent is negative, a pointer null, or a type not one of those above.
/// Numerics  deterministic; error below k * 2^-24 * sum |a * b|, and one rounding to c_dtype. A GPU's tensor cores may
///           cut sums off where others round them: twice that.
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
  void* workspace = nullptr;            ///< Variant::workspace_bytes bytes, aligned to 64
  PartialSums* partial_sums = nullptr;  ///< of an f32 C
};

void check_args(const Args& args);
void reference_run(const Args& args);

struct Variant {
  std::string_view name;
  void (*run)(Stream&, const Args&);
  bool (*supports)(const Device&, DType);  ///< where it is chosen
  bool (*computes)(DType) = nullptr;       ///< what it is right for on any device, if that is more
  std::size_t workspace_bytes = 0;         ///< enough for any product
};

}  // namespace gradring::kernels::gemm
