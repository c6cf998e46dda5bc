// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/simt.h"

/// Functions of a float without branches, tables or calls: a host compiler makes vector code of a loop over them, and
/// the threads of a warp take one path. NaN stays NaN.
namespace gradring::kernels::activations {
inline namespace GRADRING_KERNEL_COPY {

/// exp(x), of x cut off at +-87.3, where f32 is about to overflow.
///
/// Algorithm  x = n * ln 2 + r with a whole n and |r| <= ln(2) / 2: exp(x) = 2^n * exp(r), exp(r) a polynomial. Adding
///            1.5 * 2^23 rounds to whole numbers, and leaves n in the lowest bits.
/// Numerics   relative error below 2^-22.
__device__ inline float exponential(float x) {
  constexpr float kRound = 12582912.0f;
  x = x < -87.3f ? -87.3f : x;
  x = x > 87.3f ? 87.3f : x;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts, the first exact times n
  float sum = 1.38144e-3f;
  sum = sum * r + 8.36878e-3f;
  sum = sum * r + 4.16684e-2f;
  sum = sum * r + 1.66665200e-1f;
  sum = sum * r + 0.5f;
  sum = sum * (r * r) + r + 1.0f;
  const unsigned power = (static_cast<unsigned>(__float_as_int(shifted)) << 23) + 0x3f800000u;  // the bits of 2^n
  return sum * __int_as_float(static_cast<int>(power));
}

/// s(x) = 1 / (1 + exp(-x)), and 1 - s(x) without cancellation.
struct Sigmoid {
  float value, rest;
  __device__ explicit Sigmoid(float x) {
    const float e = exponential(-x);
    value = 1.0f / (1.0f + e);
    rest = e * value;
  }
};

/// The normal distribution: P(x) and its density.
///
/// Algorithm  P(-|x|) = exp(-x^2 / 2) * f(t), t = 1 / (1 + 0.28 |x|), f a polynomial of degree 9 without a constant,
///            fitted for the least relative error (2^-22); P(|x|) = 1 - P(-|x|). The exponential is that of the density.
/// Numerics   absolute error of P below 2^-21.
struct Normal {
  float distribution, density;
  __device__ explicit Normal(float x) {
    const float gauss = exponential(-0.5f * x * x);
    const float t = 1.0f / (1.0f + 0.28f * (x < 0.0f ? -x : x));
    float sum = 0.02472011f;
    sum = sum * t - 0.09359360f;
    sum = sum * t + 0.09242881f;
    sum = sum * t - 0.00644969f;
    sum = sum * t + 0.07277521f;
    sum = sum * t + 0.08363075f;
    sum = sum * t + 0.10308467f;
    sum = sum * t + 0.11169980f;
    sum = sum * t + 0.11170386f;
    const float tail = gauss * (sum * t);
    distribution = x < 0.0f ? tail : 1.0f - tail;
    density = gauss * 0.398942280f;
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::activations
