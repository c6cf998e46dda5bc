// SPDX-License-Identifier: Apache-2.0
// add, sub, mul, fma (mad), min, max, abs, neg of f32 and f64.
#include "kernels/simulated_gpu/machine/operations/floating_point.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using ptx::Type;

// Functors of f64 are those of nearest_even: others are not supported.

template <Rounding kRounding>
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (kRounding == Rounding::nearest_even) return canonical(a + b);
    return canonical(static_cast<T>(add_rounded<kRounding>(a, b)));
  }
};

template <Rounding kRounding>
struct Subtract {
  template <class T>
  T operator()(T a, T b) const {
    return Add<kRounding>{}(a, -b);
  }
};

template <Rounding kRounding>
struct Multiply {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (kRounding == Rounding::nearest_even) return canonical(a * b);
    return canonical(static_cast<T>(round_sum<kRounding>({static_cast<double>(a) * b, 0})));  // exact in double
  }
};

template <Rounding kRounding>
struct FusedMultiplyAdd {
  template <class T>
  T operator()(T a, T b, T c) const {
    if constexpr (kRounding == Rounding::nearest_even) return canonical(std::fma(a, b, c));
    return canonical(static_cast<T>(add_rounded<kRounding>(static_cast<double>(a) * b, c)));
  }
};

/// min, max: the other operand, if one is NaN; -0 is less than +0.
template <bool kMaximum>
struct Extremum {
  template <class T>
  T operator()(T a, T b) const {
    const bool takes_a = (a == b ? std::signbit(a) : a < b) != kMaximum;
    return a != a ? canonical(b) : b != b ? a : takes_a ? a : b;
  }
};

/// min.NaN, max.NaN: NaN, if one operand is.
template <class F>
struct KeepsNan {
  float operator()(float a, float b) const { return a == a && b == b ? F{}(a, b) : canonical(a + b); }
};

/// min.xorsign.abs, max.xorsign.abs: of the absolute values, with the product of the signs.
template <class F>
struct OfAbsolutes {
  float operator()(float a, float b) const {
    const float result = F{}(std::fabs(a), std::fabs(b));
    return result != result ? result : std::copysign(result, std::signbit(a) != std::signbit(b) ? -1.0f : 1.0f);
  }
};

using Negate = decltype([](auto a) { return -a; });
using Absolute = decltype([](auto a) { return std::abs(a); });

template <class F>
struct Saturate {
  template <class... T>
  float operator()(T... values) const {
    return saturated(F{}(values...));
  }
};

template <class F, unsigned kSources, class T>
constexpr Handler handler() {
  if constexpr (kSources == 1) return &unary<F, T, T>;
  if constexpr (kSources == 2) return &binary<F, T, T, T>;
  if constexpr (kSources == 3) return &ternary<F, T, T, T, T>;
}

template <class F, unsigned kSources>
Handler modified(Decoder& decoder, Type type) {
  const bool flushes = decoder.take("ftz");
  const bool saturates = decoder.take("sat");
  if (type == Type::f64) {
    if (flushes || saturates) decoder.reject(".ftz and .sat are for f32");
    return handler<F, kSources, double>();
  }
  if (type != Type::f32) decoder.reject(joined("type ", name_of(type), " is not supported here"));
  return flushes     ? saturates ? handler<Saturate<Flush<F>>, kSources, float>() : handler<Flush<F>, kSources, float>()
             : saturates ? handler<Saturate<F>, kSources, float>()
                     : handler<F, kSources, float>();
}

template <template <Rounding> class F, unsigned kSources>
void translate_rounded(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  const std::size_t rounding = decoder.take_one_of({"rn", "rz", "rm", "rp"});
  if (type == Type::f64 && rounding != 0 && rounding != 4) decoder.reject("f64 is rounded to nearest only");
  switch (rounding) {
    case 1: operation.execute = modified<F<Rounding::to_zero>, kSources>(decoder, type); break;
    case 2: operation.execute = modified<F<Rounding::down>, kSources>(decoder, type); break;
    case 3: operation.execute = modified<F<Rounding::up>, kSources>(decoder, type); break;
    default: operation.execute = modified<F<Rounding::nearest_even>, kSources>(decoder, type); break;
  }
  read_rows<kSources>(decoder, operation, type);
}

template <class F>
void translate_extremum(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  const bool keeps_nan = decoder.take("NaN");
  const bool is_of_absolutes = decoder.take("xorsign") && decoder.take("abs");
  if (type != Type::f32 && (keeps_nan || is_of_absolutes)) decoder.reject(".NaN and .xorsign.abs are for f32");
  if (keeps_nan) {
    operation.execute = is_of_absolutes ? modified<OfAbsolutes<KeepsNan<F>>, 2>(decoder, type)
                                        : modified<KeepsNan<F>, 2>(decoder, type);
  } else if (is_of_absolutes) {
    operation.execute = modified<OfAbsolutes<F>, 2>(decoder, type);
  } else {
    operation.execute = modified<F, 2>(decoder, type);
  }
  decoder.read_rows(operation, type, {type, type});
}

template <class F>
void translate_sign(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  operation.execute = modified<F, 1>(decoder, type);
  decoder.read_rows(operation, type, {type});
}

constexpr Opcode kOpcodes[] = {
    {"add", translate_rounded<Add, 2>},
    {"sub", translate_rounded<Subtract, 2>},
    {"mul", translate_rounded<Multiply, 2>},
    {"fma", translate_rounded<FusedMultiplyAdd, 3>},
    {"mad", translate_rounded<FusedMultiplyAdd, 3>},
    {"min", translate_extremum<Extremum<false>>},
    {"max", translate_extremum<Extremum<true>>},
    {"neg", translate_sign<Negate>},
    {"abs", translate_sign<Absolute>},
};

}  // namespace

std::span<const Opcode> float_opcodes() { return kOpcodes; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
