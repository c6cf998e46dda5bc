// SPDX-License-Identifier: Apache-2.0
// add, sub, mul, fma, min, max, neg, abs, setp of f16, bf16, and pairs of them. Correctly rounded.
//
// Source    PTX ISA 9.0: 9.7.4 Half Precision Floating-Point Instructions, 9.7.7 Half Precision Comparison
// Instructions.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/simulated_gpu/machine/operations/floating_point.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/units/half.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;
using Bits = std::uint16_t;

constexpr Bits kNan = 0x7fff;
constexpr Bits kSign = 0x8000;

struct Modifiers {
  bool flushes = false;    ///< .ftz
  bool saturates = false;  ///< .sat
  bool relu = false;
  bool keeps_nan = false;       ///< .NaN
  bool is_xorsign_abs = false;  ///< .xorsign.abs
};

template <Half kType>
struct Number {
  static constexpr Bits kInfinity = kType == Half::f16 ? 0x7c00 : 0x7f80;

  static bool is_nan(Bits bits) { return (bits & ~kSign) > kInfinity; }
  static Bits flushed(Bits bits) { return (bits & kInfinity) == 0 ? static_cast<Bits>(bits & kSign) : bits; }
  static double value(Bits bits) { return to_f32(kType, bits); }
};

/// Rounded to odd on the way, so that the two roundings are as one (Boldo, Melquiond, 2008).
template <Half kType>
Bits nearest(const Sum& sum) {
  if (!std::isfinite(sum.high)) return to_half(kType, static_cast<float>(sum.high));
  double odd = sum.high;
  if (sum.low != 0) {
    if (std::signbit(sum.low) != std::signbit(odd)) odd = std::nextafter(odd, 0.0);
    odd = std::bit_cast<double>(std::bit_cast<std::uint64_t>(odd) | 1);
  }
  float narrow = static_cast<float>(odd);
  if (std::fabs(static_cast<double>(narrow)) > std::fabs(odd)) narrow = std::nextafter(narrow, 0.0f);
  if (static_cast<double>(narrow) != odd)
    narrow = std::copysign(std::bit_cast<float>(std::bit_cast<std::uint32_t>(narrow) | 1), static_cast<float>(odd));
  return to_half(kType, narrow);
}

// Exact values.
using Add = decltype([](double a, double b) { return sum_of(a, b); });
using Subtract = decltype([](double a, double b) { return sum_of(a, -b); });
using Multiply = decltype([](double a, double b) { return Sum{a * b, 0}; });
using FusedMultiplyAdd =
    decltype([](double a, double b, double c) { return sum_of(a * b, c); });  // the product is exact

/// F of exact values, then rounded.
template <class F>
struct Rounded {
  template <Half kType, class... B>
  static Bits apply(const Modifiers& modifiers, B... bits) {
    using N = Number<kType>;
    const auto operand = [&](Bits value) { return N::value(modifiers.flushes ? N::flushed(value) : value); };
    Bits result = nearest<kType>(F{}(operand(bits)...));
    if (modifiers.flushes) result = N::flushed(result);
    const bool is_negative = (result & kSign) != 0;
    if (modifiers.saturates) {
      const Bits one = to_half(kType, 1);
      return N::is_nan(result) || is_negative ? Bits{0} : std::min(result, one);
    }
    return modifiers.relu && is_negative && !N::is_nan(result) ? Bits{0} : result;
  }
};

/// min, max: the other operand, if one is NaN; -0 is less than +0.
template <bool kMaximum>
struct Extremum {
  template <Half kType>
  static Bits apply(const Modifiers& modifiers, Bits a, Bits b) {
    using N = Number<kType>;
    if (modifiers.flushes) a = N::flushed(a), b = N::flushed(b);
    const auto sign = static_cast<Bits>((a ^ b) & kSign);
    if (modifiers.is_xorsign_abs) a &= ~kSign, b &= ~kSign;
    const bool both = N::is_nan(a) && N::is_nan(b);
    if (both || (modifiers.keeps_nan && (N::is_nan(a) || N::is_nan(b)))) return kNan;
    if (N::is_nan(a) || N::is_nan(b)) return N::is_nan(a) ? b : a;
    const double left = N::value(a), right = N::value(b);
    const bool takes_left = left == right ? std::signbit(left) != kMaximum : (left < right) != kMaximum;
    const Bits result = takes_left ? a : b;
    return modifiers.is_xorsign_abs ? static_cast<Bits>(result | sign) : result;
  }
};

template <bool kAbsolute>
struct ChangeSign {
  template <Half kType>
  static Bits apply(const Modifiers& modifiers, Bits a) {
    if (modifiers.flushes) a = Number<kType>::flushed(a);
    return static_cast<Bits>(kAbsolute ? a & ~kSign : a ^ kSign);
  }
};

/// d = F(a, ...), of both halves of a pair.
template <class F, Half kType, bool kPair, unsigned kSources>
void compute(const Operation& operation, Warp& warp, Mask active) {
  using R = std::conditional_t<kPair, std::uint32_t, Bits>;
  const auto& modifiers = *static_cast<const Modifiers*>(operation.details);
  R* const d = warp.row<R>(operation.d);
  const R* const a = warp.row<R>(operation.a);
  const R* const b = warp.row<R>(operation.b);
  const R* const c = warp.row<R>(operation.c);
  const auto half = [&](unsigned lane, unsigned shift) {
    const auto of = [&](const R* row) { return static_cast<Bits>(row[lane] >> shift); };
    if constexpr (kSources == 1) return F::template apply<kType>(modifiers, of(a));
    if constexpr (kSources == 2) return F::template apply<kType>(modifiers, of(a), of(b));
    if constexpr (kSources == 3) return F::template apply<kType>(modifiers, of(a), of(b), of(c));
  };
  for_each_lane(active, [&](unsigned lane) {
    if constexpr (kPair)
      d[lane] = std::uint32_t{half(lane, 16)} << 16 | half(lane, 0);
    else
      d[lane] = half(lane, 0);
  });
}

struct HalfType {
  Half type = Half::f16;
  bool is_pair = false;

  Type bits() const { return is_pair ? Type::b32 : Type::b16; }
};

HalfType take_half_type(Decoder& decoder) {
  const std::size_t type = decoder.take_one_of({"f16", "f16x2", "bf16", "bf16x2"});
  if (type > 3) decoder.reject("a type f16, f16x2, bf16 or bf16x2 is expected");
  return {type < 2 ? Half::f16 : Half::bf16, type % 2 == 1};
}

template <class F, unsigned kSources>
void translate(Decoder& decoder, Operation& operation, Modifiers modifiers) {
  const HalfType type = take_half_type(decoder);
  if (type.type == Half::bf16 && (modifiers.flushes || modifiers.saturates))
    decoder.reject(".ftz and .sat are not for bf16");
  read_rows<kSources>(decoder, operation, type.bits());
  operation.details = decoder.keep_details(modifiers);
  if (type.type == Half::f16)
    operation.execute = type.is_pair ? &compute<F, Half::f16, true, kSources> : &compute<F, Half::f16, false, kSources>;
  else
    operation.execute =
        type.is_pair ? &compute<F, Half::bf16, true, kSources> : &compute<F, Half::bf16, false, kSources>;
}

template <class F, unsigned kSources>
void translate_rounded(Decoder& decoder, Operation& operation) {
  decoder.take("rn");  // the only one
  const Modifiers modifiers{
      .flushes = decoder.take("ftz"), .saturates = decoder.take("sat"), .relu = kSources == 3 && decoder.take("relu")};
  translate<Rounded<F>, kSources>(decoder, operation, modifiers);
}

template <bool kMaximum>
void translate_extremum(Decoder& decoder, Operation& operation) {
  Modifiers modifiers{.flushes = decoder.take("ftz"), .keeps_nan = decoder.take("NaN")};
  modifiers.is_xorsign_abs = decoder.take("xorsign");
  if (modifiers.is_xorsign_abs && !decoder.take("abs")) decoder.reject(".xorsign.abs is expected");
  translate<Extremum<kMaximum>, 2>(decoder, operation, modifiers);
}

template <bool kAbsolute>
void translate_sign(Decoder& decoder, Operation& operation) {
  translate<ChangeSign<kAbsolute>, 1>(decoder, operation, {.flushes = decoder.take("ftz")});
}

struct CompareDetails {
  HalfType type;
  bool flushes = false;
  bool less = false, equal = false, greater = false, unordered = false;  ///< what of two numbers makes it hold
  Slot upper = 0;                                                        ///< of a pair: the result of the upper halves
};

template <Half kType>
bool holds(const CompareDetails& details, Bits a, Bits b) {
  using N = Number<kType>;
  if (details.flushes) a = N::flushed(a), b = N::flushed(b);
  if (N::is_nan(a) || N::is_nan(b)) return details.unordered;
  const double left = N::value(a), right = N::value(b);
  return left < right ? details.less : left > right ? details.greater : details.equal;
}

template <Half kType, class R>
void compare(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const CompareDetails*>(operation.details);
  const auto compare_at = [&](Slot slot, unsigned shift) {
    const auto half = [shift](R value) { return static_cast<Bits>(value >> shift); };
    const Mask result = lanes_where([&](R a, R b) { return holds<kType>(details, half(a), half(b)); },
                                    warp.row<R>(operation.a), warp.row<R>(operation.b));
    warp.set_predicate(slot, active, result);
  };
  compare_at(operation.d, 0);
  if (details.type.is_pair) compare_at(details.upper, 16);
}

/// setp.lt.f16 p, a, b and setp.lt.f16x2 p|q, a, b: p of the lower halves, q of the upper ones.
void translate_setp(Decoder& decoder, Operation& operation) {
  CompareDetails details{.flushes = decoder.take("ftz")};
  const std::size_t function =
      decoder.take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if (function > 13) decoder.reject("the comparison is not known");
  constexpr std::size_t kNumbers = 12, kOneNan = 13;
  constexpr bool kLess[] = {false, true, true, true, false, false};
  constexpr bool kEqual[] = {true, false, false, true, false, true};
  constexpr bool kGreater[] = {false, true, false, false, true, true};
  details.less = function < kNumbers ? kLess[function % 6] : function == kNumbers;
  details.equal = function < kNumbers ? kEqual[function % 6] : function == kNumbers;
  details.greater = function < kNumbers ? kGreater[function % 6] : function == kNumbers;
  details.unordered = (function >= 6 && function < kNumbers) || function == kOneNan;
  details.type = take_half_type(decoder);
  decoder.finish(3);
  const auto [lower, upper] = decoder.results(0);
  operation.d = decoder.destination(*lower, Type::pred);
  details.upper = decoder.destination(*upper, Type::pred);
  if (!details.type.is_pair && upper->kind != ptx::Operand::Kind::sink)
    decoder.reject("one predicate is expected, as the type is not a pair");
  operation.a = decoder.source(1, details.type.bits());
  operation.b = decoder.source(2, details.type.bits());
  if (details.type.type == Half::f16)
    operation.execute = details.type.is_pair ? &compare<Half::f16, std::uint32_t> : &compare<Half::f16, Bits>;
  else
    operation.execute = details.type.is_pair ? &compare<Half::bf16, std::uint32_t> : &compare<Half::bf16, Bits>;
  operation.details = decoder.keep_details(details);
}

constexpr Opcode kOpcodes[] = {
    {"add", translate_rounded<Add, 2>},
    {"sub", translate_rounded<Subtract, 2>},
    {"mul", translate_rounded<Multiply, 2>},
    {"fma", translate_rounded<FusedMultiplyAdd, 3>},
    {"min", translate_extremum<false>},
    {"max", translate_extremum<true>},
    {"neg", translate_sign<false>},
    {"abs", translate_sign<true>},
    {"setp", translate_setp},
};

}  // namespace

std::span<const Opcode> half_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
