// SPDX-License-Identifier: Apache-2.0
// <cuda_bf16.h>: the upper half of a binary32 as storage; arithmetic goes through float.
#pragma once

#include "kernels/runtime/half.h"
#include "kernels/simt/cpu/float16.h"
#include "kernels/simt/cpu/vector_types.h"

namespace gradring::simt::detail {

struct Brain16 {
  static std::uint16_t encode(float value) { return kernels::to_bfloat16(value).bits; }
  static float decode(std::uint16_t bits) { return kernels::to_float(kernels::BFloat16{bits}); }
};

}  // namespace gradring::simt::detail

using __nv_bfloat16 = gradring::simt::detail::Float16<gradring::simt::detail::Brain16>;
using __nv_bfloat162 = gradring::simt::detail::Float16x2<gradring::simt::detail::Brain16>;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16(float value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16::from_bits(bits); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 value) { return {value.x, value.y}; }
inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {value, value}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 value) { return {value.x, value.y}; }
inline float __low2float(__nv_bfloat162 value) { return value.x; }
inline float __high2float(__nv_bfloat162 value) { return value.y; }
