// SPDX-License-Identifier: Apache-2.0
// <cuda_fp16.h> and <cuda_bf16.h>: 16-bit types as storage; arithmetic goes through float.
#pragma once

#include <concepts>
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

/// Two of them in one 32-bit word.
template <class Format>
struct alignas(4) Float16x2 {
  Float16<Format> x, y;

  friend Float16x2 operator+(Float16x2 a, Float16x2 b) { return {a.x + b.x, a.y + b.y}; }
  friend Float16x2 operator-(Float16x2 a, Float16x2 b) { return {a.x - b.x, a.y - b.y}; }
  friend Float16x2 operator*(Float16x2 a, Float16x2 b) { return {a.x * b.x, a.y * b.y}; }
};

// CUDA's arithmetic intrinsics are the same for both formats, also by name.
template <class Type>
concept AnyFloat16 = requires(Type value) {
  { value.bits } -> std::same_as<std::uint16_t&>;
};

}  // namespace gradring::simt::detail

// clang-format off
template <class Format> using simt_f16_ = gradring::simt::detail::Float16<Format>;
template <class Format> using simt_f16x2_ = gradring::simt::detail::Float16x2<Format>;

template <class F> simt_f16_<F> __hadd(simt_f16_<F> a, simt_f16_<F> b) { return a + b; }
template <class F> simt_f16_<F> __hsub(simt_f16_<F> a, simt_f16_<F> b) { return a - b; }
template <class F> simt_f16_<F> __hmul(simt_f16_<F> a, simt_f16_<F> b) { return a * b; }
template <class F> simt_f16_<F> __hdiv(simt_f16_<F> a, simt_f16_<F> b) { return a / b; }
template <class F> simt_f16_<F> __hneg(simt_f16_<F> a) { return -a; }
template <class F> simt_f16_<F> __habs(simt_f16_<F> a) { return simt_f16_<F>::from_bits(a.bits & 0x7fffu); }
template <class F> simt_f16_<F> __hmax(simt_f16_<F> a, simt_f16_<F> b) { return __builtin_fmaxf(a, b); }
template <class F> simt_f16_<F> __hmin(simt_f16_<F> a, simt_f16_<F> b) { return __builtin_fminf(a, b); }
/// One rounding: the product of two 11-bit significands, and its sum with a third, are exact in double.
template <class F> simt_f16_<F> __hfma(simt_f16_<F> a, simt_f16_<F> b, simt_f16_<F> c) {
  return float(double(a) * double(b) + double(c));
}
template <class F> bool __heq(simt_f16_<F> a, simt_f16_<F> b) { return a == b; }
template <class F> bool __hgt(simt_f16_<F> a, simt_f16_<F> b) { return a > b; }
template <class F> bool __hge(simt_f16_<F> a, simt_f16_<F> b) { return a >= b; }
template <class F> bool __hlt(simt_f16_<F> a, simt_f16_<F> b) { return a < b; }
template <class F> bool __hle(simt_f16_<F> a, simt_f16_<F> b) { return a <= b; }
template <class F> bool __hisnan(simt_f16_<F> a) { return __builtin_isnan(float(a)); }
template <class F> int __hisinf(simt_f16_<F> a) { return __builtin_isinf_sign(float(a)); }

template <class F> simt_f16x2_<F> __hadd2(simt_f16x2_<F> a, simt_f16x2_<F> b) { return a + b; }
template <class F> simt_f16x2_<F> __hsub2(simt_f16x2_<F> a, simt_f16x2_<F> b) { return a - b; }
template <class F> simt_f16x2_<F> __hmul2(simt_f16x2_<F> a, simt_f16x2_<F> b) { return a * b; }
template <class F> simt_f16x2_<F> __hmax2(simt_f16x2_<F> a, simt_f16x2_<F> b) {
  return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
template <class F> simt_f16x2_<F> __hmin2(simt_f16x2_<F> a, simt_f16x2_<F> b) {
  return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}
template <class F> simt_f16x2_<F> __hfma2(simt_f16x2_<F> a, simt_f16x2_<F> b, simt_f16x2_<F> c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
// clang-format on

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
