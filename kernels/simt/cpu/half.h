// SPDX-License-Identifier: Apache-2.0
// <cuda_fp16.h> and <cuda_bf16.h>: 16-bit types as storage; arithmetic goes through float.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/runtime/dtype.h"
#include "kernels/simt/cpu/index.h"

namespace gradring::simt::detail {

/// A 16-bit floating-point type as CUDA's headers define them: trivially constructible, converted from and to float
/// without being asked, with arithmetic that rounds after each operation. `Format` has encode(float) and decode(bits).
template <class Format>
struct Float16 {
  std::uint16_t bits;

  Float16() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Float16(Number number) : bits(Format::encode(static_cast<float>(number))) {}
  operator float() const { return Format::decode(bits); }

  static Float16 from_bits(std::uint16_t bits) {
    Float16 value;
    value.bits = bits;
    return value;
  }

  friend Float16 operator+(Float16 a, Float16 b) { return float(a) + float(b); }
  friend Float16 operator-(Float16 a, Float16 b) { return float(a) - float(b); }
  friend Float16 operator*(Float16 a, Float16 b) { return float(a) * float(b); }
  friend Float16 operator/(Float16 a, Float16 b) { return float(a) / float(b); }
  friend Float16 operator-(Float16 a) { return from_bits(static_cast<std::uint16_t>(a.bits ^ 0x8000u)); }
  Float16& operator+=(Float16 b) { return *this = *this + b; }
  Float16& operator-=(Float16 b) { return *this = *this - b; }
  Float16& operator*=(Float16 b) { return *this = *this * b; }
  Float16& operator/=(Float16 b) { return *this = *this / b; }
  friend bool operator==(Float16 a, Float16 b) { return float(a) == float(b); }
  friend bool operator<(Float16 a, Float16 b) { return float(a) < float(b); }
  friend bool operator<=(Float16 a, Float16 b) { return float(a) <= float(b); }
  friend bool operator>(Float16 a, Float16 b) { return float(a) > float(b); }
  friend bool operator>=(Float16 a, Float16 b) { return float(a) >= float(b); }
};

struct Binary16 {
  static std::uint16_t encode(float value) { return kernels::to_half(value).bits; }
  static float decode(std::uint16_t bits) { return kernels::to_float(kernels::Half{bits}); }
};
struct Brain16 {
  static std::uint16_t encode(float value) { return kernels::to_bfloat16(value).bits; }
  static float decode(std::uint16_t bits) { return kernels::to_float(kernels::BFloat16{bits}); }
};

/// Two of them in one 32-bit word.
template <class Format>
struct alignas(4) Float16x2 {
  Float16<Format> x, y;

  friend Float16x2 operator*(Float16x2 a, Float16x2 b) { return {a.x * b.x, a.y * b.y}; }
};

}  // namespace gradring::simt::detail

// clang-format off
template <class Format> using simt_f16_ = gradring::simt::detail::Float16<Format>;
template <class Format> using simt_f16x2_ = gradring::simt::detail::Float16x2<Format>;

template <class F> simt_f16_<F> __hadd(simt_f16_<F> a, simt_f16_<F> b) { return a + b; }
template <class F> simt_f16_<F> __hsub(simt_f16_<F> a, simt_f16_<F> b) { return a - b; }
template <class F> simt_f16_<F> __hmul(simt_f16_<F> a, simt_f16_<F> b) { return a * b; }
template <class F> simt_f16_<F> __hdiv(simt_f16_<F> a, simt_f16_<F> b) { return a / b; }
template <class F> simt_f16_<F> __hmax(simt_f16_<F> a, simt_f16_<F> b) { return __builtin_fmaxf(a, b); }
/// One rounding: the product of two 11-bit significands, and its sum with a third, are exact in double.
template <class F> simt_f16_<F> __hfma(simt_f16_<F> a, simt_f16_<F> b, simt_f16_<F> c) {
  return float(double(a) * double(b) + double(c));
}

template <class F> simt_f16x2_<F> __hmul2(simt_f16x2_<F> a, simt_f16x2_<F> b) { return a * b; }
// clang-format on

using __half = gradring::simt::detail::Float16<gradring::simt::detail::Binary16>;
using __half2 = gradring::simt::detail::Float16x2<gradring::simt::detail::Binary16>;
using half = __half;

inline __half __float2half(float value) { return value; }
inline __half __float2half_rn(float value) { return value; }
inline float __half2float(__half value) { return value; }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline float2 __half22float2(__half2 value) { return {value.x, value.y}; }
inline float __low2float(__half2 value) { return value.x; }

using __nv_bfloat16 = gradring::simt::detail::Float16<gradring::simt::detail::Brain16>;
using __nv_bfloat162 = gradring::simt::detail::Float16x2<gradring::simt::detail::Brain16>;

inline __nv_bfloat16 __float2bfloat16(float value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline float __low2float(__nv_bfloat162 value) { return value.x; }
