// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/case_families.h"

namespace gradring::kernels::bench {

std::span<const CaseFamily> case_families() {
  static constexpr CaseFamily kFamilies[] = {{"fill", fill_cases},
                                             {"scale", scale_cases},
                                             {"accumulate", accumulate_cases},
                                             {"cast", cast_cases},
                                             {"relu", relu_cases},
                                             {"bias", bias_cases},
                                             {"max_pool2d", max_pool2d_cases},
                                             {"softmax_cross_entropy", softmax_cross_entropy_cases},
                                             {"gemm", gemm_cases},
                                             {"conv2d", conv2d_cases},
                                             {"conv_relu_pool", conv_relu_pool_cases},
                                             {"linear_cross_entropy", linear_cross_entropy_cases},
                                             {"sum_of_squares", sum_of_squares_cases},
                                             {"step_state", step_state_cases},
                                             {"adam", adam_cases},
                                             {"sgd", sgd_cases},
                                             {"ema", ema_cases},
                                             {"gather_batch", gather_batch_cases},
                                             {"peak", peak_cases}};
  return kFamilies;
}

}  // namespace gradring::kernels::bench
