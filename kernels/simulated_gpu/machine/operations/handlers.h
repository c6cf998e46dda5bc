// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>

#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/machine/warp.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

// Handlers of functors: d = F(a), F(a, b), F(a, b, c), lane by lane, with the types of the rows.

template <class F, class D, class A>
void unary(const Operation& operation, Warp& warp, Mask active) {
  map_lanes(active, F{}, warp.row<D>(operation.d), warp.row<A>(operation.a));
}

template <class F, class D, class A, class B>
void binary(const Operation& operation, Warp& warp, Mask active) {
  map_lanes(active, F{}, warp.row<D>(operation.d), warp.row<A>(operation.a), warp.row<B>(operation.b));
}

template <class F, class D, class A, class B, class C>
void ternary(const Operation& operation, Warp& warp, Mask active) {
  map_lanes(active, F{}, warp.row<D>(operation.d), warp.row<A>(operation.a), warp.row<B>(operation.b),
            warp.row<C>(operation.c));
}

/// min and max of integers, whose order is that of T.
struct IntegerMinimum {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};

struct IntegerMaximum {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};

/// Reads "<type> d, a", and "<type> d, a, b": all operands have the type.
inline ptx::Type read_unary(Decoder& decoder, Operation& operation) {
  const ptx::Type type = decoder.take_type();
  decoder.finish(2);
  operation.d = decoder.destination(0, type);
  operation.a = decoder.source(1, type);
  return type;
}

inline ptx::Type read_binary(Decoder& decoder, Operation& operation) {
  const ptx::Type type = decoder.take_type();
  decoder.finish(3);
  operation.d = decoder.destination(0, type);
  operation.a = decoder.source(1, type);
  operation.b = decoder.source(2, type);
  return type;
}

/// Whether values of a type of PTX are computed as T. Bits without a meaning are unsigned.
template <class T>
constexpr bool computes(ptx::Type type) {
  using enum ptx::Type;
  if constexpr (std::same_as<T, std::uint8_t>) return type == u8 || type == b8;
  if constexpr (std::same_as<T, std::int8_t>) return type == s8;
  if constexpr (std::same_as<T, std::uint16_t>) return type == u16 || type == b16;
  if constexpr (std::same_as<T, std::int16_t>) return type == s16;
  if constexpr (std::same_as<T, std::uint32_t>) return type == u32 || type == b32;
  if constexpr (std::same_as<T, std::int32_t>) return type == s32;
  if constexpr (std::same_as<T, std::uint64_t>) return type == u64 || type == b64;
  if constexpr (std::same_as<T, std::int64_t>) return type == s64;
  if constexpr (std::same_as<T, float>) return type == f32;
  if constexpr (std::same_as<T, double>) return type == f64;
  return false;
}

constexpr bool is_signed(ptx::Type type) {
  using enum ptx::Type;
  return type == s8 || type == s16 || type == s32 || type == s64;
}

/// The type without a sign and without a meaning: s32 and f32 are b32.
constexpr ptx::Type bits_of(ptx::Type type) {
  using enum ptx::Type;
  switch (type) {
    case s8:
    case u8: return b8;
    case s16:
    case u16:
    case f16:
    case bf16: return b16;
    case s32:
    case u32:
    case f32: return b32;
    case s64:
    case u64:
    case f64: return b64;
    default: return type;
  }
}

/// What choose.operator()<T>() returns for the one of Types that computes `type`.
///
/// Errors    Unsupported if none of them does.
/// Example   operation.execute = choose_type<std::uint32_t, std::uint64_t>(decoder, type, []<class T> { return
/// &unary<Not, T, T>; });
template <class... Types, class Choose>
auto choose_type(Decoder& decoder, ptx::Type type, Choose choose) {
  using Result = std::common_type_t<decltype(choose.template operator()<Types>())...>;
  Result result{};
  const bool found = ((computes<Types>(type) && (result = choose.template operator()<Types>(), true)) || ...);
  if (!found) decoder.reject("type " + std::string(ptx::name_of(type)) + " is not supported here");
  return result;
}

/// The same for registers: by width alone.
template <class Choose>
auto choose_bits(Decoder& decoder, ptx::Type type, Choose choose) {
  return choose_type<std::uint16_t, std::uint32_t, std::uint64_t>(decoder, bits_of(type), choose);
}

}  // namespace gradring::simulated_gpu
