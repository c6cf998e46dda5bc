// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lib/native_vector.h"

namespace gradring::kernels::bench {

/// 1 / (1 - beta^t) and the like, computed once a step.
struct PlainAdamStep {
  float beta1, beta2, epsilon;
  float step_size;         ///< lr / (1 - beta1^t)
  float root_correction2;  ///< sqrt(1 - beta2^t)
};

/// A depthwise convolution; y is [batch, out_height, out_width, channels].
struct PlainDepthwise {
  int batch, height, width, channels, out_height, out_width, kernel_height, kernel_width, stride, padding;
};

/// The loops that anyone would write on a CPU, in f32: what a kernel written for a grid is to keep up with. Arrays of
/// one loop do not overlap. Compiled once for each level of the instruction set, as the kernels are.
struct PlainLoops {
  void (*fill)(float* y, std::size_t elements, float value);
  void (*scale)(const float* x, float* y, std::size_t elements, float factor);
  void (*accumulate)(const float* x, float* y, std::size_t elements);
  void (*cast)(const float* x, lib::NativeHalf* y, std::size_t elements);
  void (*relu_forward)(const float* x, float* y, std::size_t elements);
  void (*relu_backward)(const float* y, const float* dy, float* dx, std::size_t elements);
  void (*gelu)(const float* x, float* y, std::size_t elements);
  void (*silu)(const float* x, float* y, std::size_t elements);
  void (*bias_add)(const float* x, const float* bias, float* y, std::size_t rows, std::size_t channels);
  void (*bias_grad)(const float* dy, float* db, std::size_t rows, std::size_t channels);
  void (*depthwise_forward)(const PlainDepthwise& g, const float* x, const float* w, float* y);
  void (*depthwise_dgrad)(const PlainDepthwise& g, const float* dy, const float* w, float* dx);
  void (*depthwise_wgrad)(const PlainDepthwise& g, const float* x, const float* dy, float* dw);
  /// The passes of batch_norm, with ReLU, residual, weight and bias.
  void (*channel_statistics)(const float* x, float* statistics, std::size_t rows, std::size_t channels);
  void (*normalize_channels)(const float* x, const float* residual, const float* weight, const float* bias,
                             const float* saved, float* y, std::size_t rows, std::size_t channels);
  void (*channel_gradient_sums)(const float* x, const float* y, const float* dy, const float* saved, float* sums,
                                std::size_t rows, std::size_t channels);
  void (*normalize_channels_backward)(const float* x, const float* y, const float* dy, const float* weight,
                                      const float* saved, const float* sums, float* dx, float* dresidual,
                                      std::size_t rows, std::size_t channels);
  float (*sum_of_squares)(const float* x, std::size_t elements);
  void (*adam)(float* w, const float* g, float* m, float* v, std::size_t elements, const PlainAdamStep& step);
  void (*sgd)(float* w, const float* g, float* buffer, std::size_t elements, float momentum, float learning_rate);
  /// One row: returns its loss, writes its gradient times `scale`.
  float (*softmax_cross_entropy)(const float* logits, float* dlogits, std::size_t classes, std::size_t label,
                                 float scale);
  /// Nothing but multiply-adds in registers: operations a second, by the vector width that is fastest here.
  double (*multiply_adds)(int rounds);
};

/// The copy for the level that this process runs.
const PlainLoops& plain();

}  // namespace gradring::kernels::bench
