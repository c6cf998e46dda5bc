// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/simt/simt.h"

/// What a row's softmax is compared with: one class, as long as nobody asks for more, or a distribution t[c]. Kernels
/// choose when they are compiled, so that a hard label costs nothing of what a soft one needs.
namespace gradring::kernels::softmax_cross_entropy {
inline namespace GRADRING_KERNEL_COPY {

template <bool kSoft>
class Target;

/// All weight is at the label.
template <>
class Target<false> {
 public:
  __device__ Target(const std::int32_t* labels, const SoftTargets& /*soft*/, std::size_t row, int /*classes*/)
      : label_(labels[row]) {}

  __device__ bool valid(int classes) const { return label_ >= 0 && label_ < classes; }
  /// The class that counts as right.
  __device__ int prediction() const { return label_; }
  /// sum_c t[c] (m - x[c]), of a valid target.
  template <class T>
  __device__ float distance(const T* x, int /*classes*/, float m) const {
    return m - lib::to_f32(x[label_]);
  }
  /// p - t[c].
  __device__ float gradient(int c, float p) const { return c == label_ ? p - 1.0f : p; }

 private:
  int label_;
};

/// Weights at two classes, and the same small one at all.
template <>
class Target<true> {
 public:
  __device__ Target(const std::int32_t* labels, const SoftTargets& soft, std::size_t row, int classes)
      : a_(labels[row]), b_(soft.labels_b ? soft.labels_b[row] : a_) {
    const float b = soft.weights_b ? soft.weights_b[row] : 0.0f;
    weights_valid_ = b >= 0.0f && b <= 1.0f;
    larger_ = b > 0.5f ? b_ : a_;
    weight_a_ = (1.0f - soft.label_smoothing) * (1.0f - b);
    weight_b_ = (1.0f - soft.label_smoothing) * b;
    everywhere_ = soft.label_smoothing / static_cast<float>(classes);
  }

  __device__ bool valid(int classes) const {
    return a_ >= 0 && a_ < classes && b_ >= 0 && b_ < classes && weights_valid_;
  }
  __device__ int prediction() const { return larger_; }
  /// Terms of weight 0 are left out: 0 times infinity is no number.
  template <class T>
  __device__ float distance(const T* x, int classes, float m) const {
    float sum = 0;
    if (weight_a_ > 0.0f) sum += weight_a_ * (m - lib::to_f32(x[a_]));
    if (weight_b_ > 0.0f) sum += weight_b_ * (m - lib::to_f32(x[b_]));
    if (!(everywhere_ > 0.0f)) return sum;
    float all = 0;
    for (int c = 0; c < classes; ++c) all += m - lib::to_f32(x[c]);
    return sum + everywhere_ * all;
  }
  __device__ float gradient(int c, float p) const {
    float t = everywhere_;
    t += c == a_ ? weight_a_ : 0.0f;
    t += c == b_ ? weight_b_ : 0.0f;
    return p - t;
  }

 private:
  int a_, b_, larger_;
  float weight_a_, weight_b_, everywhere_;
  bool weights_valid_;
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::softmax_cross_entropy
