// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_set.h"

namespace gradring::kernels {
inline namespace GRADRING_KERNEL_COPY {

KernelSet kernel_set() {
  return {
      .accumulate = accumulate::variants(),
      .adam = adam::variants(),
      .bias = bias::variants(),
      .cast = cast::variants(),
      .conv2d = conv2d::variants(),
      .conv_relu_pool = conv_relu_pool::variants(),
      .ema = ema::variants(),
      .exact_sum = exact_sum::variants(),
      .fill = fill::variants(),
      .gather_batch = gather_batch::variants(),
      .gemm = gemm::variants(),
      .linear_cross_entropy = linear_cross_entropy::variants(),
      .max_pool2d = max_pool2d::variants(),
      .peak = peak::variants(),
      .relu = relu::variants(),
      .scale = scale::variants(),
      .sgd = sgd::variants(),
      .softmax_cross_entropy = softmax_cross_entropy::variants(),
      .step_state = step_state::variants(),
      .sum_of_squares = sum_of_squares::variants(),
  };
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels
