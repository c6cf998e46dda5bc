// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/plain_loops.h"

#include <algorithm>
#include <cmath>

#include "kernels/bench/statistics.h"

namespace gradring::kernels::bench {
inline namespace GRADRING_KERNEL_COPY {
namespace {

void fill(float* y, std::size_t elements, float value) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = value;
}

void scale(const float* __restrict x, float* __restrict y, std::size_t elements, float factor) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = factor * x[i];
}

void accumulate(const float* __restrict x, float* __restrict y, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) y[i] += x[i];
}

void cast(const float* __restrict x, lib::NativeHalf* __restrict y, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = static_cast<lib::NativeHalf>(x[i]);
}

void relu_forward(const float* __restrict x, float* __restrict y, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void relu_backward(const float* __restrict y, const float* __restrict dy, float* __restrict dx, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

void gelu(const float* __restrict x, float* __restrict y, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = 0.5f * x[i] * (1 + std::erf(x[i] * 0.707106781f));
}

void silu(const float* __restrict x, float* __restrict y, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = x[i] / (1 + std::exp(-x[i]));
}

void bias_add(const float* __restrict x, const float* __restrict bias, float* __restrict y, std::size_t rows,
              std::size_t channels) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) y[r * channels + c] = x[r * channels + c] + bias[c];
}

void bias_grad(const float* __restrict dy, float* __restrict db, std::size_t rows, std::size_t channels) {
  for (std::size_t c = 0; c < channels; ++c) db[c] = 0;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) db[c] += dy[r * channels + c];
}

/// Calls visit(offset in x, offset in y, position in the kernel) for all channels of what one weight links.
template <class Visit>
void for_each_link(const PlainDepthwise& g, Visit visit) {
  for (int n = 0; n < g.batch; ++n)
    for (int oh = 0; oh < g.out_height; ++oh)
      for (int ow = 0; ow < g.out_width; ++ow)
        for (int tap = 0; tap < g.kernel_height * g.kernel_width; ++tap) {
          const int ih = oh * g.stride + tap / g.kernel_width - g.padding;
          const int iw = ow * g.stride + tap % g.kernel_width - g.padding;
          if (ih < 0 || ih >= g.height || iw < 0 || iw >= g.width) continue;
          visit(((static_cast<std::ptrdiff_t>(n) * g.height + ih) * g.width + iw) * g.channels,
                ((static_cast<std::ptrdiff_t>(n) * g.out_height + oh) * g.out_width + ow) * g.channels, tap);
        }
}

void depthwise_forward(const PlainDepthwise& g, const float* __restrict x, const float* __restrict w,
                       float* __restrict y) {
  const int taps = g.kernel_height * g.kernel_width;
  std::fill_n(y, static_cast<std::ptrdiff_t>(g.batch) * g.out_height * g.out_width * g.channels, 0.0f);
  for_each_link(g, [&](std::ptrdiff_t in, std::ptrdiff_t out, int tap) {
    for (int c = 0; c < g.channels; ++c) y[out + c] += x[in + c] * w[c * taps + tap];
  });
}

void depthwise_dgrad(const PlainDepthwise& g, const float* __restrict dy, const float* __restrict w,
                     float* __restrict dx) {
  const int taps = g.kernel_height * g.kernel_width;
  std::fill_n(dx, static_cast<std::ptrdiff_t>(g.batch) * g.height * g.width * g.channels, 0.0f);
  for_each_link(g, [&](std::ptrdiff_t in, std::ptrdiff_t out, int tap) {
    for (int c = 0; c < g.channels; ++c) dx[in + c] += dy[out + c] * w[c * taps + tap];
  });
}

void depthwise_wgrad(const PlainDepthwise& g, const float* __restrict x, const float* __restrict dy,
                     float* __restrict dw) {
  const int taps = g.kernel_height * g.kernel_width;
  std::fill_n(dw, static_cast<std::ptrdiff_t>(g.channels) * taps, 0.0f);
  for_each_link(g, [&](std::ptrdiff_t in, std::ptrdiff_t out, int tap) {
    for (int c = 0; c < g.channels; ++c) dw[c * taps + tap] += x[in + c] * dy[out + c];
  });
}

/// statistics: mean, M2, count.
void channel_statistics(const float* __restrict x, float* __restrict statistics, std::size_t rows,
                        std::size_t channels) {
  float* const mean = statistics;
  float* const m2 = statistics + channels;
  const auto count = static_cast<float>(rows);
  for (std::size_t c = 0; c < 2 * channels; ++c) statistics[c] = 0;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) mean[c] += x[r * channels + c];
  for (std::size_t c = 0; c < channels; ++c) mean[c] /= count;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) {
      const float deviation = x[r * channels + c] - mean[c];
      m2[c] += deviation * deviation;
    }
  statistics[2 * channels] = count;
}

void normalize_channels(const float* __restrict x, const float* __restrict residual, const float* __restrict weight,
                        const float* __restrict bias, const float* __restrict saved, float* __restrict y,
                        std::size_t rows, std::size_t channels) {
  const float* const invstd = saved + channels;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t i = r * channels + c;
      const float value = (x[i] - saved[c]) * (invstd[c] * weight[c]) + bias[c] + residual[i];
      y[i] = value < 0.0f ? 0.0f : value;
    }
}

void channel_gradient_sums(const float* __restrict x, const float* __restrict y, const float* __restrict dy,
                           const float* __restrict saved, float* __restrict sums, std::size_t rows,
                           std::size_t channels) {
  for (std::size_t c = 0; c < 2 * channels; ++c) sums[c] = 0;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t i = r * channels + c;
      const float gradient = y[i] > 0.0f ? dy[i] : 0.0f;
      sums[c] += gradient;
      sums[channels + c] += gradient * (x[i] - saved[c]);
    }
  for (std::size_t c = 0; c < channels; ++c) sums[channels + c] *= saved[channels + c];
}

void normalize_channels_backward(const float* __restrict x, const float* __restrict y, const float* __restrict dy,
                                 const float* __restrict weight, const float* __restrict saved,
                                 const float* __restrict sums, float* __restrict dx, float* __restrict dresidual,
                                 std::size_t rows, std::size_t channels) {
  const float* const invstd = saved + channels;
  const float share = 1 / saved[2 * channels];
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t i = r * channels + c;
      const float gradient = y[i] > 0.0f ? dy[i] : 0.0f;
      const float slope = invstd[c] * sums[channels + c] * share;
      dresidual[i] = gradient;
      dx[i] = weight[c] * invstd[c] * (gradient - sums[c] * share - (x[i] - saved[c]) * slope);
    }
}

float sum_of_squares(const float* x, std::size_t elements) {
  float sum = 0;
  for (std::size_t i = 0; i < elements; ++i) sum += x[i] * x[i];
  return sum;
}

void adam(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v,
          std::size_t elements, const PlainAdamStep& step) {
  const PlainAdamStep s = step;
  for (std::size_t i = 0; i < elements; ++i) {
    m[i] = s.beta1 * m[i] + (1 - s.beta1) * g[i];
    v[i] = s.beta2 * v[i] + (1 - s.beta2) * g[i] * g[i];
    w[i] -= s.step_size * m[i] / (std::sqrt(v[i]) / s.root_correction2 + s.epsilon);
  }
}

void sgd(float* __restrict w, const float* __restrict g, float* __restrict buffer, std::size_t elements, float momentum,
         float learning_rate) {
  for (std::size_t i = 0; i < elements; ++i) {
    buffer[i] = momentum * buffer[i] + g[i];
    w[i] -= learning_rate * buffer[i];
  }
}

float softmax_cross_entropy(const float* __restrict logits, float* __restrict dlogits, std::size_t classes,
                            std::size_t label, float scale) {
  const float most = *std::max_element(logits, logits + classes);
  float sum = 0;
  for (std::size_t c = 0; c < classes; ++c) sum += dlogits[c] = std::exp(logits[c] - most);
  for (std::size_t c = 0; c < classes; ++c) dlogits[c] = (dlogits[c] / sum - (c == label ? 1.0f : 0.0f)) * scale;
  return most + std::log(sum) - logits[label];
}

using Lanes4 __attribute__((vector_size(16))) = float;
using Lanes8 __attribute__((vector_size(32))) = float;
using Lanes16 __attribute__((vector_size(64))) = float;

template <class Lanes>
double flops_per_second_in(int rounds) {
  constexpr int kLanes = static_cast<int>(sizeof(Lanes) / sizeof(float));
  constexpr int kAccumulators = 12;  // more than the latency of an addition times the units that add
  volatile float start = 1;          // sums that the compiler knew to be equal would be one sum
  Lanes sums[kAccumulators];
  for (Lanes& sum : sums) sum = Lanes{} + start;
  const Lanes factor = Lanes{} + 0.5f;
  const Lanes term = Lanes{} + 1.0f;
  const Stopwatch watch;
  for (int round = 0; round < rounds; ++round)
    for (Lanes& sum : sums) sum = sum * factor + term;
  const double seconds = watch.seconds();
  volatile float kept = 0;  // so that the compiler computes the sums
  for (const Lanes& sum : sums) kept = kept + sum[0];
  return 2.0 * kLanes * kAccumulators * rounds / seconds;
}

double multiply_adds(int rounds) {
  return std::max(
      {flops_per_second_in<Lanes4>(rounds), flops_per_second_in<Lanes8>(rounds), flops_per_second_in<Lanes16>(rounds)});
}

}  // namespace

PlainLoops plain_loops() {
  return {
      .fill = fill,
      .scale = scale,
      .accumulate = accumulate,
      .cast = cast,
      .relu_forward = relu_forward,
      .relu_backward = relu_backward,
      .gelu = gelu,
      .silu = silu,
      .bias_add = bias_add,
      .bias_grad = bias_grad,
      .depthwise_forward = depthwise_forward,
      .depthwise_dgrad = depthwise_dgrad,
      .depthwise_wgrad = depthwise_wgrad,
      .channel_statistics = channel_statistics,
      .normalize_channels = normalize_channels,
      .channel_gradient_sums = channel_gradient_sums,
      .normalize_channels_backward = normalize_channels_backward,
      .sum_of_squares = sum_of_squares,
      .adam = adam,
      .sgd = sgd,
      .softmax_cross_entropy = softmax_cross_entropy,
      .multiply_adds = multiply_adds,
  };
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::bench
