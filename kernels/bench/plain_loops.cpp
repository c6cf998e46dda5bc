// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/plain_loops.h"

#include <algorithm>
#include <cmath>

namespace gradring::kernels::bench::plain {

void fill(float* y, std::size_t elements, float value) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = value;
}

void scale(const float* __restrict x, float* __restrict y, std::size_t elements, float factor) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = factor * x[i];
}

void accumulate(const float* __restrict x, float* __restrict y, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) y[i] += x[i];
}

void cast(const float* __restrict x, _Float16* __restrict y, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = static_cast<_Float16>(x[i]);
}

void relu_forward(const float* __restrict x, float* __restrict y, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void relu_backward(const float* __restrict y, const float* __restrict dy, float* __restrict dx, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
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

float sum_of_squares(const float* x, std::size_t elements) {
  float sum = 0;
  for (std::size_t i = 0; i < elements; ++i) sum += x[i] * x[i];
  return sum;
}

void adam(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v,
          std::size_t elements, const AdamStep& step) {
  const AdamStep s = step;
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

}  // namespace gradring::kernels::bench::plain
