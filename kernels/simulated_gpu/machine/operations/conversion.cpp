// SPDX-License-Identifier: Apache-2.0
// cvt: between integers, floats, and from one to the other.
#include <limits>
#include <type_traits>

#include "kernels/simulated_gpu/machine/operations/floating_point.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/units/half.h"

namespace gradring::simulated_gpu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using ptx::Type;

/// The register of a value: 8 bits are held in 16.
template <class T>
using RegisterOf =
    std::conditional_t<sizeof(T) <= 2, std::uint16_t,
                       std::conditional_t<std::is_floating_point_v<T>, T,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// The lower bits of a register as a From, then as a To, then extended to its register.
template <class From, class To>
struct ConvertInteger {
  template <class R>
  RegisterOf<To> operator()(R value) const {
    return static_cast<RegisterOf<To>>(static_cast<To>(static_cast<From>(value)));
  }
};

// .rni, .rzi, .rmi, .rpi
using NearestEven = decltype([](auto value) { return std::nearbyint(value); });
using ToZero = decltype([](auto value) { return std::trunc(value); });
using Down = decltype([](auto value) { return std::floor(value); });
using Up = decltype([](auto value) { return std::ceil(value); });

/// Out of range: clamped. NaN: 0, or if one of the types has 64 bits, the value with the uppermost bit alone.
template <class From, class To, class Round>
struct FloatToInteger {
  RegisterOf<To> operator()(From value) const {
    constexpr bool kWideNan = sizeof(From) == 8 || sizeof(To) == 8;
    constexpr auto kTopBit = static_cast<std::make_unsigned_t<To>>(std::make_unsigned_t<To>{1} << (8 * sizeof(To) - 1));
    if (value != value) return kWideNan ? static_cast<RegisterOf<To>>(kTopBit) : 0;
    // 2^N or 2^(N-1), which a float holds exactly, as it does not the greatest integer.
    constexpr From kEnd =
        static_cast<From>(std::is_signed_v<To> ? 2 : 4) * static_cast<From>(std::uint64_t{1} << (8 * sizeof(To) - 2));
    const From whole = Round{}(value);
    if (whole >= kEnd) return static_cast<RegisterOf<To>>(std::numeric_limits<To>::max());
    if (whole <= static_cast<From>(std::numeric_limits<To>::min()))
      return static_cast<RegisterOf<To>>(std::numeric_limits<To>::min());
    return static_cast<RegisterOf<To>>(static_cast<To>(whole));
  }
};

template <class From, class To>
struct IntegerToFloat {
  template <class R>
  To operator()(R value) const {
    return static_cast<To>(static_cast<From>(value));
  }
};

template <class Round>
struct RoundToInteger {
  template <class T>
  T operator()(T value) const {
    return canonical(Round{}(value));
  }
};

using Same = decltype([](float value) { return value; });
using Widen = decltype([](float value) { return double{value}; });
using Narrow = decltype([](double value) { return canonical(static_cast<float>(value)); });

template <class F>
struct Saturate {
  template <class T>
  auto operator()(T value) const {
    return saturated(F{}(value));
  }
};

using ToHalf = decltype([](float value) { return f32_to_f16(value); });
using ToBFloat16 = decltype([](float value) { return f32_to_bf16(value); });
using FromHalf = decltype([](std::uint16_t bits) { return f16_to_f32(bits); });
using FromBFloat16 = decltype([](std::uint16_t bits) { return bf16_to_f32(bits); });

/// cvt.rn.relu.f16x2.f32 d, a, b: a in the upper half; with .relu 0 for what is negative.
template <class F, bool kRelu>
struct Pair {
  std::uint32_t operator()(float upper, float lower) const { return std::uint32_t{of(upper)} << 16 | of(lower); }

 private:
  static std::uint16_t of(float value) { return F{}(kRelu && value <= 0 ? 0 : value); }
};

bool is_float(Type type) { return type == Type::f32 || type == Type::f64; }
bool is_16_bit_float(Type type) { return type == Type::f16 || type == Type::bf16; }

/// Source registers may be wider than the type that is read.
Handler between_integers(Decoder& decoder, Type to, Type from, unsigned source_width) {
  return choose_integer_or_byte(decoder, to, [&]<class To> {
    return choose_integer_or_byte(decoder, from, [&]<class From> {
      // A result that is not wider does not depend on the sign of what it is cut from.
      using Cut = std::conditional_t<sizeof(To) <= sizeof(From), std::make_unsigned_t<From>, From>;
      return choose_register<From>(decoder, source_width,
                                   []<class R> { return &unary<ConvertInteger<Cut, To>, RegisterOf<To>, R>; });
    });
  });
}

/// Takes .rni, .rzi, .rmi or .rpi, and calls choose.operator()<Round>() for it.
template <class Choose>
Handler choose_way(Decoder& decoder, Choose choose) {
  switch (decoder.take_one_of({"rni", "rzi", "rmi", "rpi"})) {
    case 0: return choose.template operator()<NearestEven>();
    case 1: return choose.template operator()<ToZero>();
    case 2: return choose.template operator()<Down>();
    case 3: return choose.template operator()<Up>();
    default: return nullptr;
  }
}

template <class From>
Handler float_to_integer(Decoder& decoder, Type to) {
  const Handler handler = choose_way(decoder, [&]<class Round> {
    return choose_integer_or_byte(
        decoder, to, []<class To> { return &unary<FloatToInteger<From, To, Round>, RegisterOf<To>, From>; });
  });
  if (handler == nullptr) decoder.reject("one of .rni, .rzi, .rmi and .rpi is expected");
  return handler;
}

template <class To>
Handler integer_to_float(Decoder& decoder, Type from, unsigned source_width) {
  if (!decoder.take("rn")) decoder.reject(".rn is expected");
  return choose_integer_or_byte(decoder, from, [&]<class From> {
    return choose_register<From>(decoder, source_width,
                                 []<class R> { return &unary<IntegerToFloat<From, To>, To, R>; });
  });
}

template <class T>
Handler within_a_float_type(Decoder& decoder) {
  const bool saturates = decoder.take("sat");
  const Handler rounds = choose_way(decoder, [&]<class Round> {
    using F = RoundToInteger<Round>;
    return saturates ? &unary<Saturate<F>, T, T> : &unary<F, T, T>;
  });
  if (rounds != nullptr) return rounds;
  if (!saturates || sizeof(T) != 4) decoder.reject(".sat or a rounding is expected");
  return &unary<Saturate<Same>, T, T>;
}

Handler between_floats(Decoder& decoder, Type to, Type from) {
  if (to == Type::f32 && from == Type::f32) return within_a_float_type<float>(decoder);
  if (to == Type::f64 && from == Type::f64) return within_a_float_type<double>(decoder);
  if (to == Type::f64 && from == Type::f32) return &unary<Widen, double, float>;
  if (to == Type::f32 && from == Type::f16) return &unary<FromHalf, float, std::uint16_t>;
  if (to == Type::f32 && from == Type::bf16) return &unary<FromBFloat16, float, std::uint16_t>;
  if (!decoder.take("rn")) decoder.reject(".rn is expected");
  if (to == Type::f32 && from == Type::f64)
    return decoder.take("sat") ? &unary<Saturate<Narrow>, float, double> : &unary<Narrow, float, double>;
  if (to == Type::f16 && from == Type::f32) return &unary<ToHalf, std::uint16_t, float>;
  if (to == Type::bf16 && from == Type::f32) return &unary<ToBFloat16, std::uint16_t, float>;
  decoder.reject("the conversion is not supported");
}

void translate_pair(Decoder& decoder, Operation& operation, bool is_half) {
  if (!decoder.take("rn")) decoder.reject("expected .rn");
  const bool relu = decoder.take("relu");
  if (decoder.take_type() != Type::f32) decoder.reject("expected f32");
  decoder.read_rows(operation, Type::b32, {Type::f32, Type::f32});
  const auto handler_of = [&]<bool kRelu> {
    return is_half ? &binary<Pair<ToHalf, kRelu>, std::uint32_t, float, float>
                   : &binary<Pair<ToBFloat16, kRelu>, std::uint32_t, float, float>;
  };
  operation.execute = relu ? handler_of.template operator()<true>() : handler_of.template operator()<false>();
}

/// Whether what follows knows the instruction; translate_any_conversion knows all of them, and is slower.
bool is_frequent(const ptx::Instruction& instruction) {
  for (const std::string_view word : {"rz", "rm", "rp", "rna", "satfinite", "ftz", "pack"})
    if (instruction.has(word)) return false;
  if (instruction.words.size() < 3) return false;
  const std::string_view to_name = instruction.words[instruction.words.size() - 2];
  const Type from = ptx::type_named(instruction.words.back());
  if (to_name == "f16x2" || to_name == "bf16x2") return from == Type::f32;
  if (instruction.has("relu")) return false;
  const Type to = ptx::type_named(to_name);
  if (from == Type::none || to == Type::none) return false;
  if (is_16_bit_float(to)) return from == Type::f32 && !instruction.has("sat");
  if (is_16_bit_float(from)) return to == Type::f32 && !instruction.has("sat");
  return (is_float(to) && is_float(from)) || !instruction.has("sat");
}

void translate_cvt(Decoder& decoder, Operation& operation) {
  if (!is_frequent(decoder.instruction())) return translate_any_conversion(decoder, operation);
  if (decoder.take("f16x2")) return translate_pair(decoder, operation, true);
  if (decoder.take("bf16x2")) return translate_pair(decoder, operation, false);
  const Type to = decoder.take_type();
  const Type from = decoder.take_type();
  if (from == Type::none || from == Type::pred || to == Type::pred) decoder.reject("two types of numbers are expected");
  const bool to_real = is_float(to) || is_16_bit_float(to);
  const bool from_real = is_float(from) || is_16_bit_float(from);
  const Decoder::Wide source =
      from_real ? Decoder::Wide{decoder.source(1, from), 0} : decoder.wide_source(decoder.operand(1), from);
  operation.a = source.slot;
  operation.d = decoder.destination(0, bytes_of(to) == 1 ? Type::b16 : to);
  if (to_real && from_real)
    operation.execute = between_floats(decoder, to, from);
  else if (to == Type::f32)
    operation.execute = integer_to_float<float>(decoder, from, source.width);
  else if (to == Type::f64)
    operation.execute = integer_to_float<double>(decoder, from, source.width);
  else if (from == Type::f32)
    operation.execute = float_to_integer<float>(decoder, to);
  else if (from == Type::f64)
    operation.execute = float_to_integer<double>(decoder, to);
  else if (!to_real && !from_real)
    operation.execute = between_integers(decoder, to, from, source.width);
  else
    decoder.reject("the conversion is not supported");
  decoder.finish(2);
}

constexpr Opcode kOpcodes[] = {{"cvt", translate_cvt}};

}  // namespace

std::span<const Opcode> conversion_opcodes() { return kOpcodes; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
