// SPDX-License-Identifier: Apache-2.0
// <cuda_fp16.h>: binary16 as storage; arithmetic goes through float.
#pragma once

#include "kernels/runtime/half.h"
#include "kernels/simt/cpu/float16.h"
#include "kernels/simt/cpu/vector_types.h"

namespace gradring::simt::detail {

struct Binary16 {
  static std::uint16_t encode(float value) { return kernels::to_half(value).bits; }
  static float decode(std::uint16_t bits) { return kernels::to_float(kernels::Half{bits}); }
};

}  // namespace gradring::simt::detail

using __half = gradring::simt::detail::Float16<gradring::simt::detail::Binary16>;
using __half2 = gradring::simt::detail::Float16x2<gradring::simt::detail::Binary16>;
using half = __half;
using half2 = __half2;

inline __half __float2half(float value) { return value; }
inline __half __float2half_rn(float value) { return value; }
inline float __half2float(__half value) { return value; }
inline __half __int2half_rn(int value) { return value; }
inline __half __ushort_as_half(unsigned short bits) { return __half::from_bits(bits); }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __float22half2_rn(float2 value) { return {value.x, value.y}; }
inline __half2 __float2half2_rn(float value) { return {value, value}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half value) { return {value, value}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline float2 __half22float2(__half2 value) { return {value.x, value.y}; }
inline float __low2float(__half2 value) { return value.x; }
inline float __high2float(__half2 value) { return value.y; }
inline __half __low2half(__half2 value) { return value.x; }
inline __half __high2half(__half2 value) { return value.y; }
