// SPDX-License-Identifier: Apache-2.0
// Idea: a fixed number of threads, whatever the grid or the machine, each add up a fixed share; one block then adds
//   up their sums. Nothing depends on who comes first, so the same input gives the same bits.
// Mapping: thread t of kPartials takes every kPartials-th group of 8 elements (GPU) or one run of groups (CPU), and
//   keeps 8 sums, so that the additions do not wait for each other.
// Traffic and bound: reads each element once; bound by memory, for few elements by the two launches.
// Still slow because: 8192 threads do not fill a large GPU, and the second launch costs as much as the first for a
//   small model.
// Limits: float sums: the more elements, the more rounding (see the contract).

#include "kernels/sum_of_squares/sum_of_squares.h"

#include "kernels/lib/block_sum.h"
#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::sum_of_squares {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kGroup = 8;
constexpr unsigned kPartialThreads = 128;
constexpr int kTotalThreads = 256;

template <class T>
__global__ void sum_of_squares_partial_kernel(const T* __restrict__ x, std::size_t elements,
                                              float* __restrict__ partial_sums,
                                              std::int32_t* __restrict__ partial_flags) {
  float sums[kGroup] = {};
  int flags[kGroup] = {};
  const auto take = [&](std::size_t i, int j) {
    const float value = lib::to_f32(x[i]);
    sums[j] += value * value;
    flags[j] |= isfinite(value) ? 0 : 1;
  };
  for (std::size_t group : simt::grid_range(elements / kGroup))
    for (int j = 0; j < kGroup; ++j) take(group * kGroup + static_cast<std::size_t>(j), j);
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread == 0)
    for (std::size_t i = elements / kGroup * kGroup; i < elements; ++i) take(i, 0);
  float sum = 0;
  int flag = 0;
  for (int j = 0; j < kGroup; ++j) {
    sum += sums[j];
    flag |= flags[j];
  }
  partial_sums[thread] = sum;
  partial_flags[thread] = flag;
}

/// One block: adds up the partial sums and flags.
__global__ void sum_of_squares_total_kernel(const float* __restrict__ partial_sums,
                                            const std::int32_t* __restrict__ partial_flags, float* sum,
                                            std::int32_t* non_finite) {
  float sums[1] = {};
  int flags[1] = {};
  for (unsigned i : simt::block_range(0, kPartials)) {
    sums[0] += partial_sums[i];
    flags[0] += partial_flags[i];
  }
  lib::block_sum<kTotalThreads>(sums, [=](int, float total) { *sum = total; });
  lib::block_sum<kTotalThreads>(flags, [=](int, int flagged) { *non_finite = flagged > 0; });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  float* sums = static_cast<float*>(args.workspace);
  std::int32_t* flags = reinterpret_cast<std::int32_t*>(sums + kPartials);
  const simt::Config partial{.grid = dim3(kPartials / kPartialThreads), .block = dim3(kPartialThreads)};
  lib::with_element(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch_flat<sum_of_squares_partial_kernel<T>>(stream, partial, static_cast<const T*>(args.x), args.elements,
                                                        sums, flags);
  });
  const simt::Config total{.grid = dim3(1), .block = dim3(kTotalThreads)};
  simt::launch<sum_of_squares_total_kernel>(stream, total, sums, flags, args.sum, args.non_finite);
}

}  // namespace

Variant two_stage() { return {"two_stage", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sum_of_squares
