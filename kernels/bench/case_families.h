// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/bench/case_maker.h"

namespace gradring::kernels::bench {

using Cases = std::vector<KernelCase>;

inline Cases only(KernelCase one) {
  Cases cases;
  cases.push_back(std::move(one));
  return cases;
}

/// The cases of each operation: by default those of the seed ConvNet at batch 64, in f32.
Cases accumulate_cases(CaseMaker& make);
Cases adam_cases(CaseMaker& make);
Cases bias_cases(CaseMaker& make);
Cases cast_cases(CaseMaker& make);
Cases conv2d_cases(CaseMaker& make);
Cases conv_relu_pool_cases(CaseMaker& make);
Cases ema_cases(CaseMaker& make);
Cases fill_cases(CaseMaker& make);
Cases gather_batch_cases(CaseMaker& make);
Cases gemm_cases(CaseMaker& make);
Cases linear_cross_entropy_cases(CaseMaker& make);
Cases max_pool2d_cases(CaseMaker& make);
Cases peak_cases(CaseMaker& make);
Cases relu_cases(CaseMaker& make);
Cases scale_cases(CaseMaker& make);
Cases sgd_cases(CaseMaker& make);
Cases softmax_cross_entropy_cases(CaseMaker& make);
Cases step_state_cases(CaseMaker& make);
Cases sum_of_squares_cases(CaseMaker& make);

struct CaseFamily {
  std::string_view operation;  ///< as its folder is named
  Cases (*cases)(CaseMaker&);
};

/// One entry an operation, in the order in which kernels/README.md has them.
std::span<const CaseFamily> case_families();

}  // namespace gradring::kernels::bench
