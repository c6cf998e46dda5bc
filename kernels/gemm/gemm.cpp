// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm.h"

#include <string>
#include <vector>

#include "kernels/lib/reference.h"
#include "kernels/runtime/error.h"

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
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  const auto m = static_cast<std::size_t>(args.m);
  const auto n = static_cast<std::size_t>(args.n);
  const auto k = static_cast<std::size_t>(args.k);
  const std::vector<double> a = lib::read_values(args.dtype, args.a, m * k);
  const std::vector<double> b = lib::read_values(args.dtype, args.b, k * n);
  std::vector<double> c(m * n, 0.0);
  if (args.accumulate) c = lib::read_values(args.c_dtype, args.c, m * n);
  for (std::size_t row = 0; row < m; ++row)
    for (std::size_t col = 0; col < n; ++col) {
      double sum = 0;
      for (std::size_t i = 0; i < k; ++i)
        sum += a[args.transpose_a ? i * m + row : row * k + i] * b[args.transpose_b ? col * k + i : i * n + col];
      c[row * n + col] += sum;
    }
  lib::write_values(args.c_dtype, args.c, c);
}

}  // namespace reference
}  // namespace gradring::kernels::gemm
