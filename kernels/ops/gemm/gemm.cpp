// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gemm/gemm.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::gemm {

void check_args(const Args& args) {
  lib::check_floating("gemm", "dtype", args.dtype);
  check(args.c_dtype == DType::f32 || args.c_dtype == args.dtype, [&] {
    return "gemm: c_dtype is " + std::string(name_of(args.c_dtype)) + ", expected f32 or the type of A and B, " +
           std::string(name_of(args.dtype));
  });
  lib::check_at_least("gemm", 0, {{"m", args.m}, {"n", args.n}, {"k", args.k}});
  if (args.m == 0 || args.n == 0) return;
  if (args.k) lib::check_pointers("gemm", {{"a", args.a}, {"b", args.b}});
  lib::check_pointer("gemm", "c", args.c);
  const std::size_t c_bytes = lib::bytes_of(args.m * args.n, args.c_dtype);
  lib::check_apart("gemm", args.a, lib::bytes_of(args.m * args.k, args.dtype), args.c, c_bytes);
  lib::check_apart("gemm", args.b, lib::bytes_of(args.k * args.n, args.dtype), args.c, c_bytes);
  lib::check_apart("gemm", args.bias, lib::bytes_of(args.n, args.dtype), args.c, c_bytes);
  const std::size_t row_bytes = lib::bytes_of(args.m, DType::f32);
  lib::check_apart("gemm", args.c, c_bytes, args.row_sums, row_bytes);
  lib::check_apart("gemm", args.a, lib::bytes_of(args.m * args.k, args.dtype), args.row_sums, row_bytes);
  lib::check_apart("gemm", args.b, lib::bytes_of(args.k * args.n, args.dtype), args.row_sums, row_bytes);
  lib::check_apart("gemm", args.bias, lib::bytes_of(args.n, args.dtype), args.row_sums, row_bytes);
}

void reject_row_sums(std::string_view variant, const Args& args) {
  check(!args.row_sums, [&] {
    return "gemm: row_sums is not null, but variant " + std::string(variant) +
           " does not compute the row sums of this product; use bias grad";
  });
}

namespace {

/// An operand row by row, as the product reads it.
std::vector<double> read_rows(DType dtype, const void* from, std::size_t rows, std::size_t columns,
                              bool is_transposed) {
  std::vector<double> values = lib::read_values(dtype, from, rows * columns);
  if (!is_transposed) return values;
  std::vector<double> transposed(values.size());
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      transposed[row * columns + column] = values[column * rows + row];
  return transposed;
}

}  // namespace

void reference_run(const Args& args) {
  check_args(args);
  const auto m = static_cast<std::size_t>(args.m);
  const auto n = static_cast<std::size_t>(args.n);
  const auto k = static_cast<std::size_t>(args.k);
  const std::vector<double> a = read_rows(args.dtype, args.a, m, k, args.transpose_a);
  const std::vector<double> b = read_rows(args.dtype, args.b, k, n, args.transpose_b);
  std::vector<double> c(m * n, 0.0);
  if (args.accumulate) c = lib::read_values(args.c_dtype, args.c, m * n);
  std::vector<double> bias, row_sums(m, 0.0);
  if (args.bias) bias = lib::read_values(args.dtype, args.bias, n);
  if (args.row_sums && args.accumulate) row_sums = lib::read_values(DType::f32, args.row_sums, m);
  std::vector<double> sums(n);
  for (std::size_t row = 0; row < m; ++row) {
    std::ranges::fill(sums, 0.0);
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t column = 0; column < n; ++column) sums[column] += a[row * k + i] * b[i * n + column];
    for (std::size_t column = 0; column < n; ++column) {
      double& to = c[row * n + column];
      to += sums[column] + (args.bias ? bias[column] : 0.0);
      if (args.relu && to < 0) to = 0;  // NaN stays NaN
    }
    if (!args.row_sums) continue;
    double& row_sum = row_sums[row];
    for (std::size_t i = 0; i < k; ++i) row_sum += a[row * k + i];
  }
  lib::write_values(args.c_dtype, args.c, c);
  if (args.row_sums) lib::write_values(DType::f32, args.row_sums, row_sums);
}

}  // namespace gradring::kernels::gemm
