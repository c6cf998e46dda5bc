// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/simt/simt.h"

namespace gradring::kernels::linear_cross_entropy {
inline namespace GRADRING_KERNEL_COPY {

struct RowVerdict {
  float loss;
  bool right;  ///< the first maximum is at the label
};

/// Softmax and cross-entropy of one row of logits in f32, by one thread: x[c] becomes (p[c] - [c == label]) * scale.
/// All of it is NaN if the label is no class or a logit is NaN.
__device__ inline RowVerdict replace_by_gradient(float* x, int classes, std::int32_t label, float scale) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const bool valid = label >= 0 && label < classes;
  float largest = x[0];
  int where = 0;
  for (int c = 1; c < classes; ++c) {
    where = x[c] > largest ? c : where;
    largest = x[c] > largest ? x[c] : largest;
  }
  const float to_label = valid ? largest - x[label] : kNaN;
  float sum = 0;  // NaN if there is a NaN in the row
  for (int c = 0; c < classes; ++c) {
    x[c] = expf(x[c] - largest);
    sum += x[c];
  }
  const float factor = valid ? scale : kNaN;
  for (int c = 0; c < classes; ++c) x[c] = (c == label ? x[c] / sum - 1.0f : x[c] / sum) * factor;
  const float loss = logf(sum) + to_label;
  return {.loss = loss, .right = where == label && loss == loss};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::linear_cross_entropy
