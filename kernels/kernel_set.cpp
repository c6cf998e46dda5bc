// SPDX-License-Identifier: Apache-2.0
// The table of variants of each operation, simplest first. Compiled by the host compiler and by nvcc's.
#include "kernels/kernel_set.h"

#include <array>

#include "kernels/lib/level_copies.h"

namespace gradring::kernels {

// Compiled for each instruction level.
GRADRING_DECLARE_COPIES(accumulate, Variant, flat);
GRADRING_DECLARE_COPIES(adam, Variant, flat);
GRADRING_DECLARE_COPIES(adam, Variant, vector);
GRADRING_DECLARE_COPIES(bias, Variant, rows);
GRADRING_DECLARE_COPIES(cast, Variant, flat);
GRADRING_DECLARE_COPIES(conv2d, Variant, direct);
GRADRING_DECLARE_COPIES(conv_relu_pool, Variant, direct);
GRADRING_DECLARE_COPIES(conv_relu_pool, Variant, native_cpu);  // no_native.cpp in the CUDA module
GRADRING_DECLARE_COPIES(ema, Variant, flat);
GRADRING_DECLARE_COPIES(exact_sum, Variant, flat);
GRADRING_DECLARE_COPIES(fill, Variant, flat);
GRADRING_DECLARE_COPIES(gather_batch, Variant, rows);
GRADRING_DECLARE_COPIES(gemm, Variant, strips);
GRADRING_DECLARE_COPIES(linear_cross_entropy, Variant, two_launches);
GRADRING_DECLARE_COPIES(max_pool2d, Variant, rows);
GRADRING_DECLARE_COPIES(relu, Variant, flat);
GRADRING_DECLARE_COPIES(scale, Variant, flat);
GRADRING_DECLARE_COPIES(sgd, Variant, flat);
GRADRING_DECLARE_COPIES(sgd, Variant, vector);
GRADRING_DECLARE_COPIES(softmax_cross_entropy, Variant, row_per_thread);
GRADRING_DECLARE_COPIES(sum_of_squares, Variant, two_stage);

// Compiled once.
GRADRING_DECLARE_COPY(conv2d, Variant, tiled);
GRADRING_DECLARE_COPY(conv2d, Variant, wmma_tiles);
GRADRING_DECLARE_COPY(conv2d, Variant, mma);
GRADRING_DECLARE_COPY(conv_relu_pool, Variant, mma_tiles);
GRADRING_DECLARE_COPY(gemm, Variant, tiled);
GRADRING_DECLARE_COPY(gemm, Variant, wmma_fragments);
GRADRING_DECLARE_COPY(gemm, Variant, mma);
GRADRING_DECLARE_COPY(gemm, Variant, wgmma);
GRADRING_DECLARE_COPY(peak, Variant, multiply_adds);
GRADRING_DECLARE_COPY(peak, Variant, mma);
GRADRING_DECLARE_COPY(step_state, Variant, one_thread);

inline namespace GRADRING_KERNEL_COPY {
namespace {

/// The table of an operation; it lives as long as the process. No two operations have the same type of Variant.
template <class Variant, class... More>
std::span<const Variant> table(Variant (*first)(), More... more) {
  static const std::array kTable = {first(), more()...};
  return kTable;
}

}  // namespace

KernelSet kernel_set() {
  return {
      .accumulate = table(GRADRING_COPY_TO_RUN(accumulate, flat)),
      .adam = table(GRADRING_COPY_TO_RUN(adam, flat), GRADRING_COPY_TO_RUN(adam, vector)),
      .bias = table(GRADRING_COPY_TO_RUN(bias, rows)),
      .cast = table(GRADRING_COPY_TO_RUN(cast, flat)),
      .conv2d = table(GRADRING_COPY_TO_RUN(conv2d, direct), conv2d::tiled, conv2d::wmma_tiles, conv2d::mma),
      .conv_relu_pool = table(GRADRING_COPY_TO_RUN(conv_relu_pool, direct),
                              GRADRING_COPY_TO_RUN(conv_relu_pool, native_cpu), conv_relu_pool::mma_tiles),
      .ema = table(GRADRING_COPY_TO_RUN(ema, flat)),
      .exact_sum = table(GRADRING_COPY_TO_RUN(exact_sum, flat)),
      .fill = table(GRADRING_COPY_TO_RUN(fill, flat)),
      .gather_batch = table(GRADRING_COPY_TO_RUN(gather_batch, rows)),
      .gemm = table(GRADRING_COPY_TO_RUN(gemm, strips), gemm::tiled, gemm::wmma_fragments, gemm::mma, gemm::wgmma),
      .linear_cross_entropy = table(GRADRING_COPY_TO_RUN(linear_cross_entropy, two_launches)),
      .max_pool2d = table(GRADRING_COPY_TO_RUN(max_pool2d, rows)),
      .peak = table(peak::multiply_adds, peak::mma),
      .relu = table(GRADRING_COPY_TO_RUN(relu, flat)),
      .scale = table(GRADRING_COPY_TO_RUN(scale, flat)),
      .sgd = table(GRADRING_COPY_TO_RUN(sgd, flat), GRADRING_COPY_TO_RUN(sgd, vector)),
      .softmax_cross_entropy = table(GRADRING_COPY_TO_RUN(softmax_cross_entropy, row_per_thread)),
      .step_state = table(step_state::one_thread),
      .sum_of_squares = table(GRADRING_COPY_TO_RUN(sum_of_squares, two_stage)),
  };
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels
