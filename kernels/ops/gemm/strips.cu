// SPDX-License-Identifier: Apache-2.0
// Idea: two loops, by the layout of B. B [n, k] is K-major: C is made of dot products with rows of B. B [k, n] is
//   N-major: a row of C is a sum of rows of B.
// Mapping: each thread computes a row of a strip of C, 8 or 32 columns wide, in registers; each warp one strip, its
//   lanes over the rows of C.
// Traffic and bound: every thread reads its own row of A and its strip of B, so A is read n/8 (or n/32) times and B m
//   times, from the caches; bound by their bandwidth.
// Still slow because: nothing is shared within a block: a tile of A and B in shared memory would serve many times as
//   many products per load. No tensor cores.
// Limits: m, n, k < 2^31.

#include "kernels/ops/gemm/gemm.h"

#include "kernels/base/error.h"
#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kDots = 8;
constexpr int kSums = 32;

/// What becomes of a sum of column j of a strip, and where it goes.
template <class T, class C>
struct Epilogue {
  bool accumulate;
  const T* bias;  ///< or null
  bool relu;

  __device__ void put(C* to, std::int64_t column, int j, float sum) const {
    if (accumulate) sum += lib::to_f32(to[j]);
    if (bias) sum += lib::to_f32(bias[column + j]);
    to[j] = lib::from_f32<C>(relu && sum < 0.0f ? 0.0f : sum);  // NaN stays NaN
  }
};

/// C = op(A) B^T, B stored [n, k].
template <class T, class C, bool kTransposeA>
__global__ void gemm_run_dots_kernel(const T* __restrict__ a, const T* __restrict__ b, C* __restrict__ c, int m,
                                     std::int64_t n, int k, Epilogue<T, C> epilogue) {
  for (std::int64_t strip : lib::row_range(lib::strips(n, kDots))) {
    const std::int64_t col = strip * kDots;
    const int width = lib::strip_width(n, strip, kDots);
    for (int row : lib::lane_range(m)) {
      lib::Dots<kDots> dots;
      if constexpr (kTransposeA) {
        for (std::int64_t i = 0; i < k; ++i) dots.add(a + i * m + row, b + col * k + i, k, width, 1);
      } else {
        dots.add(a + std::int64_t{row} * k, b + col * k, k, width, k);
      }
      C* to = c + row * n + col;
      dots.for_each(width, [&](int j, float sum) { epilogue.put(to, col, j, sum); });
    }
  }
}

/// C = op(A) B, B stored [k, n].
template <class T, class C, bool kTransposeA>
__global__ void gemm_run_sums_kernel(const T* __restrict__ a, const T* __restrict__ b, C* __restrict__ c, int m,
                                     std::int64_t n, int k, Epilogue<T, C> epilogue) {
  for (std::int64_t strip : lib::row_range(lib::strips(n, kSums))) {
    const std::int64_t col = strip * kSums;
    const int width = lib::strip_width(n, strip, kSums);
    for (int row : lib::lane_range(m)) {
      lib::Strip<kSums> sums;
      for (std::int64_t i = 0; i < k; ++i) {
        const float factor = lib::to_f32(kTransposeA ? a[i * m + row] : a[std::int64_t{row} * k + i]);
        sums.add_product(factor, b + i * n + col, width);
      }
      C* to = c + row * n + col;
      sums.for_each(width, [&](int j, float sum) { epilogue.put(to, col, j, sum); });
    }
  }
}

template <class T, class C>
void launch(Stream& stream, const Args& args) {
  const auto start = [&]<auto Kernel>(int strip) {
    simt::launch_flat<Kernel>(stream, lib::rows_for(stream, lib::strips(args.n, strip), args.m * args.n * args.k),
                              static_cast<const T*>(args.a), static_cast<const T*>(args.b), static_cast<C*>(args.c),
                              lib::narrow<int>("gemm", "m", args.m), args.n, lib::narrow<int>("gemm", "k", args.k),
                              Epilogue<T, C>{args.accumulate, static_cast<const T*>(args.bias), args.relu});
  };
  lib::with_bool(args.transpose_a, [&](auto transpose_a) {
    if (args.transpose_b)
      start.template operator()<gemm_run_dots_kernel<T, C, transpose_a.value>>(kDots);
    else
      start.template operator()<gemm_run_sums_kernel<T, C, transpose_a.value>>(kSums);
  });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  reject_row_sums("strips", args);
  lib::narrow<int>("gemm", "n", args.n);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    if (args.c_dtype == DType::f32)
      launch<T, float>(stream, args);
    else
      launch<T, T>(stream, args);
  });
}

}  // namespace

Variant strips() { return {"strips", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
