// SPDX-License-Identifier: Apache-2.0
// add, sub, mul, mad, div, rem, min, max, abs, neg of integers; sad and mul24 do not occur.
#include <type_traits>

#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using ptx::Type;

/// T, or an unsigned int: 16-bit products of int would overflow.
template <class T>
using Modular = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
template <class T>
struct TwiceAsWide;
template <>
struct TwiceAsWide<std::uint16_t> : std::type_identity<std::uint32_t> {};
template <>
struct TwiceAsWide<std::int16_t> : std::type_identity<std::int32_t> {};
template <>
struct TwiceAsWide<std::uint32_t> : std::type_identity<std::uint64_t> {};
template <>
struct TwiceAsWide<std::int32_t> : std::type_identity<std::int64_t> {};
template <>
struct TwiceAsWide<std::uint64_t> : std::type_identity<__uint128_t> {};
template <>
struct TwiceAsWide<std::int64_t> : std::type_identity<__int128_t> {};
template <class T>
using Product = typename TwiceAsWide<T>::type;

using Add = decltype([]<class T>(T a, T b) { return static_cast<T>(static_cast<Modular<T>>(a) + b); });
using Subtract = decltype([]<class T>(T a, T b) { return static_cast<T>(static_cast<Modular<T>>(a) - b); });
using MultiplyLow = decltype([]<class T>(T a, T b) { return static_cast<T>(static_cast<Modular<T>>(a) * b); });
using MultiplyHigh =
    decltype([]<class T>(T a, T b) { return static_cast<T>(static_cast<Product<T>>(a) * b >> (8 * sizeof(T))); });
using MultiplyWide = decltype([]<class T>(T a, T b) { return static_cast<Product<T>>(a) * b; });
using Negate = decltype([]<class T>(T a) { return static_cast<T>(0 - static_cast<Modular<T>>(a)); });
using Absolute = decltype([]<class T>(T a) { return static_cast<std::make_signed_t<T>>(a) < 0 ? Negate{}(a) : a; });

/// d = F(a, b) + c, modulo 2^N.
template <class F>
struct ThenAdd {
  template <class T, class C>
  C operator()(T a, T b, C c) const {
    return Add{}(static_cast<C>(F{}(a, b)), c);
  }
};

/// What PTX leaves open, division by zero, gives all ones, as compilers for GPUs do.
struct Divide {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return Subtract{}(std::make_unsigned_t<T>{0}, static_cast<std::make_unsigned_t<T>>(a));
    return static_cast<T>(a / b);
  }
};

struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};

template <class F>
void translate_modular(Decoder& decoder, Operation& operation) {
  const Type type = take_type_and_rows<2>(decoder, operation);
  operation.execute = choose_bits(decoder, type, []<class T> { return &binary<F, T, T, T>; });
}

template <class F>
void translate_with_sign(Decoder& decoder, Operation& operation) {
  const Type type = take_type_and_rows<2>(decoder, operation);
  operation.execute = choose_integer(decoder, type, []<class T> { return &binary<F, T, T, T>; });
}

template <class F>
void translate_signed_unary(Decoder& decoder, Operation& operation) {
  const Type type = take_type_and_rows<1>(decoder, operation);
  if (!is_signed(type)) decoder.reject("a signed type is expected");
  operation.execute = choose_bits(decoder, type, []<class T> { return &unary<F, T, T>; });
}

Type twice_as_wide(Type type) {
  switch (type) {
    case Type::u16: return Type::u32;
    case Type::s16: return Type::s32;
    case Type::u32: return Type::u64;
    case Type::s32: return Type::s64;
    default: return Type::none;
  }
}

/// mul.wide and mad.wide: factors of 16 or 32 bits, the result has twice as many.
template <bool kAdds>
void translate_wide(Decoder& decoder, Operation& operation, Type type) {
  const Type wide = twice_as_wide(type);
  if (wide == Type::none) decoder.reject(joined("type ", name_of(type), " has no .wide form"));
  operation.d = decoder.destination(0, wide);
  if constexpr (kAdds) operation.c = decoder.source(3, wide);
  operation.execute =
      choose_type<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t>(decoder, type, []<class T>() -> Handler {
        if constexpr (kAdds) return &ternary<ThenAdd<MultiplyWide>, Product<T>, T, T, Product<T>>;
        return &binary<MultiplyWide, Product<T>, T, T>;
      });
}

template <bool kAdds>
void translate_multiply(Decoder& decoder, Operation& operation) {
  enum { kLow, kHigh, kWide };
  const std::size_t part = decoder.take_one_of({"lo", "hi", "wide"});
  const Type type = decoder.take_type();
  decoder.finish(kAdds ? 4 : 3);
  operation.a = decoder.source(1, type);
  operation.b = decoder.source(2, type);
  if (part == kWide) return translate_wide<kAdds>(decoder, operation, type);
  operation.d = decoder.destination(0, type);
  if constexpr (kAdds) operation.c = decoder.source(3, type);
  if (part == kLow)
    operation.execute = choose_bits(decoder, type, []<class T>() -> Handler {
      if constexpr (kAdds) return &ternary<ThenAdd<MultiplyLow>, T, T, T, T>;
      return &binary<MultiplyLow, T, T, T>;
    });
  else if (part == kHigh)
    operation.execute = choose_integer(decoder, type, []<class T>() -> Handler {
      if constexpr (kAdds) return &ternary<ThenAdd<MultiplyHigh>, T, T, T, T>;
      return &binary<MultiplyHigh, T, T, T>;
    });
  else
    decoder.reject("one of .lo, .hi and .wide is expected");
}

constexpr Opcode kOpcodes[] = {
    {"add", translate_modular<Add>},
    {"sub", translate_modular<Subtract>},
    {"mul", translate_multiply<false>},
    {"mad", translate_multiply<true>},
    {"div", translate_with_sign<Divide>},
    {"rem", translate_with_sign<Remainder>},
    {"min", translate_with_sign<IntegerMinimum>},
    {"max", translate_with_sign<IntegerMaximum>},
    {"neg", translate_signed_unary<Negate>},
    {"abs", translate_signed_unary<Absolute>},
};

}  // namespace

std::span<const Opcode> integer_opcodes() { return kOpcodes; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
