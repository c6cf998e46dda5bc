// SPDX-License-Identifier: Apache-2.0
// The table of variants of each operation, simplest first. Compiled by the host compiler and by nvcc's.
#include "kernels/ops/kernel_set.h"

#include <cstddef>

#include "kernels/lib/level_copies.h"
#include "kernels/ops/grouped_conv2d/grouped_conv2d.h"

namespace gradring::kernels {

// GRADRING_LINKAGE is nothing, or weak in a module of one operation, which lacks the functions of the others.

// Compiled once, into the namespace GRADRING_KERNEL_COPY of its operation.
#define DECLARE(operation, function)      \
  namespace operation {                   \
  inline namespace GRADRING_KERNEL_COPY { \
  GRADRING_LINKAGE Variant function();    \
  }                                       \
  }                                       \
  static_assert(true, "a semicolon follows")

// Compiled for each instruction level.
#define DECLARE_COPIES(operation, function)                    \
  namespace operation {                                        \
  GRADRING_DECLARE_COPIES(GRADRING_LINKAGE Variant, function); \
  }                                                            \
  static_assert(true, "a semicolon follows")
#define COPY_TO_RUN(operation, function) GRADRING_COPY_TO_RUN_OF(operation::, function)

DECLARE_COPIES(accumulate, flat);
DECLARE_COPIES(adam, flat);
DECLARE_COPIES(adam, vector);
DECLARE_COPIES(avg_pool2d, strips);
DECLARE_COPIES(batch_norm, channels);
DECLARE_COPIES(batch_norm, native_cpu);  // only_on_cpu.cpp in the CUDA module
DECLARE_COPIES(bias, rows);
DECLARE_COPIES(cast, flat);
DECLARE_COPIES(conv2d, direct);
DECLARE_COPIES(conv2d, panels_cpu);  // only_on_cpu.cpp in the CUDA module
DECLARE_COPIES(conv_relu_pool, direct);
DECLARE_COPIES(conv_relu_pool, native_cpu);  // only_on_cpu.cpp in the CUDA module
DECLARE_COPIES(dropout, groups);
DECLARE_COPIES(ema, flat);
DECLARE_COPIES(exact_sum, flat);
DECLARE_COPIES(fill, flat);
DECLARE_COPIES(gather_batch, rows);
DECLARE_COPIES(gelu, flat);
DECLARE_COPIES(gemm, strips);
DECLARE_COPIES(gradient_statistics, two_stage);
DECLARE_COPIES(grouped_conv2d, direct);
DECLARE_COPIES(grouped_conv2d, native_cpu);  // only_on_cpu.cpp in the CUDA module
DECLARE_COPIES(linear_cross_entropy, two_launches);
DECLARE_COPIES(max_pool2d, rows);
DECLARE_COPIES(muon, flat);
DECLARE_COPIES(relu, flat);
DECLARE_COPIES(scale, flat);
DECLARE_COPIES(sgd, flat);
DECLARE_COPIES(sgd, vector);
DECLARE_COPIES(silu, flat);
DECLARE_COPIES(softmax_cross_entropy, row_per_thread);
DECLARE_COPIES(tally, row_per_thread);

DECLARE(adam, last_block);
DECLARE(avg_pool2d, vectors);
DECLARE(batch_norm, vector);
DECLARE(bias, blocks);
DECLARE(conv2d, tiled);
DECLARE(conv2d, wmma_tiles);
DECLARE(conv2d, mma);
DECLARE(conv2d, wgmma);
DECLARE(conv_relu_pool, mma_tiles);
DECLARE(conv_relu_pool, wgmma_windows);
DECLARE(gather_batch, blocks);
DECLARE(gemm, naive);
DECLARE(gemm, coalesced);
DECLARE(gemm, shared_tile);
DECLARE(gemm, register_tile);
DECLARE(gemm, tiled);
DECLARE(gemm, wmma_fragments);
DECLARE(gemm, mma);
DECLARE(gemm, wgmma);
DECLARE(gradient_statistics, one_launch);
DECLARE(grouped_conv2d, depthwise);
DECLARE(linear_cross_entropy, one_launch);
DECLARE(peak, multiply_adds);
DECLARE(peak, mma);
DECLARE(peak, wgmma);
DECLARE(sgd, last_block);
DECLARE(step_state, one_thread);

inline namespace GRADRING_KERNEL_COPY {
namespace {

/// The variants that were linked; they live as long as the process.
template <class Variant, class... More>
std::span<const Variant> table(Variant (*first)(), More... more) {
  auto* const variants = new Variant[1 + sizeof...(more)];
  std::size_t count = 0;
  for (const auto make : {first, more...})
    if (make) variants[count++] = make();
  return {variants, count};
}

}  // namespace

KernelSet kernel_set() {
  static const KernelSet kSet = {
      .accumulate = table(COPY_TO_RUN(accumulate, flat)),
      .adam = table(COPY_TO_RUN(adam, flat), COPY_TO_RUN(adam, vector), adam::last_block),
      .avg_pool2d = table(COPY_TO_RUN(avg_pool2d, strips), avg_pool2d::vectors),
      .batch_norm = table(COPY_TO_RUN(batch_norm, channels), COPY_TO_RUN(batch_norm, native_cpu), batch_norm::vector),
      .bias = table(COPY_TO_RUN(bias, rows), bias::blocks),
      .cast = table(COPY_TO_RUN(cast, flat)),
      .conv2d = table(COPY_TO_RUN(conv2d, direct), conv2d::tiled, conv2d::wmma_tiles, conv2d::mma, conv2d::wgmma,
                      COPY_TO_RUN(conv2d, panels_cpu)),
      .conv_relu_pool = table(COPY_TO_RUN(conv_relu_pool, direct), COPY_TO_RUN(conv_relu_pool, native_cpu),
                              conv_relu_pool::mma_tiles, conv_relu_pool::wgmma_windows),
      .dropout = table(COPY_TO_RUN(dropout, groups)),
      .ema = table(COPY_TO_RUN(ema, flat)),
      .exact_sum = table(COPY_TO_RUN(exact_sum, flat)),
      .fill = table(COPY_TO_RUN(fill, flat)),
      .gather_batch = table(COPY_TO_RUN(gather_batch, rows), gather_batch::blocks),
      .gelu = table(COPY_TO_RUN(gelu, flat)),
      .gemm = table(COPY_TO_RUN(gemm, strips), gemm::naive, gemm::coalesced, gemm::shared_tile, gemm::register_tile,
                    gemm::tiled, gemm::wmma_fragments, gemm::mma, gemm::wgmma),
      .gradient_statistics = table(COPY_TO_RUN(gradient_statistics, two_stage), gradient_statistics::one_launch),
      .grouped_conv2d = table(COPY_TO_RUN(grouped_conv2d, direct), COPY_TO_RUN(grouped_conv2d, native_cpu),
                              grouped_conv2d::depthwise),
      .linear_cross_entropy = table(COPY_TO_RUN(linear_cross_entropy, two_launches), linear_cross_entropy::one_launch),
      .max_pool2d = table(COPY_TO_RUN(max_pool2d, rows)),
      .muon = table(COPY_TO_RUN(muon, flat)),
      .peak = table(peak::multiply_adds, peak::mma, peak::wgmma),
      .relu = table(COPY_TO_RUN(relu, flat)),
      .scale = table(COPY_TO_RUN(scale, flat)),
      .sgd = table(COPY_TO_RUN(sgd, flat), COPY_TO_RUN(sgd, vector), sgd::last_block),
      .silu = table(COPY_TO_RUN(silu, flat)),
      .softmax_cross_entropy = table(COPY_TO_RUN(softmax_cross_entropy, row_per_thread)),
      .step_state = table(step_state::one_thread),
      .tally = table(COPY_TO_RUN(tally, row_per_thread)),
  };
  return kSet;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels
