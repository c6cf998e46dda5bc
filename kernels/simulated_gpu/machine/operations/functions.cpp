// SPDX-License-Identifier: Apache-2.0
// div, rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh. Those with .rn are correctly rounded; the approximate ones are
// rounded from double.
#include <bit>
#include <cmath>

#include "kernels/simulated_gpu/machine/operations/floating_point.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

using Divide = decltype([](auto a, auto b) { return canonical(a / b); });
using Reciprocal = decltype([]<class T>(T a) { return canonical(T{1} / a); });
using SquareRoot = decltype([](auto a) { return canonical(std::sqrt(a)); });

template <double (*kFunction)(double)>
struct Approximate {
  float operator()(float a) const { return canonical(static_cast<float>(kFunction(a))); }
};

double reciprocal_root(double a) { return 1 / std::sqrt(a); }
double power_of_two(double a) { return std::exp2(a); }
double logarithm(double a) { return std::log2(a); }
double sine(double a) { return std::sin(a); }
double cosine(double a) { return std::cos(a); }
double hyperbolic_tangent(double a) { return std::tanh(a); }

/// .approx.ftz.f64: of the upper words of operand and result alone.
template <class F>
struct OfUpperWord {
  double operator()(double a) const {
    constexpr std::uint64_t kUpper = 0xFFFFFFFF00000000;
    const auto cut = [](double value) {
      const std::uint64_t bits = std::bit_cast<std::uint64_t>(value) & kUpper;
      return std::bit_cast<double>((bits & 0x7FF0000000000000) == 0 ? bits & 0x8000000000000000 : bits);
    };
    return cut(F{}(cut(a)));
  }
};

using ReciprocalRoot =
    decltype([](double a) { return static_cast<double>(1 / std::sqrt(static_cast<long double>(a))); });

template <class F>
Handler unary_f32(Decoder& decoder) {
  return decoder.take("ftz") ? &unary<Flush<F>, float, float> : &unary<F, float, float>;
}

/// .rn for both types; .approx for f32 gives the same values here.
template <class F>
void translate_exact(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  const std::size_t way = decoder.take_one_of({"rn", "approx"});
  if (type == Type::f64 && way == 0)
    operation.execute = &unary<F, double, double>;
  else if (type == Type::f64 && way == 1 && decoder.take("ftz"))
    operation.execute = &unary<OfUpperWord<F>, double, double>;
  else if (type == Type::f32 && way < 2)
    operation.execute = unary_f32<F>(decoder);
  else
    decoder.reject("expected .rn, or .approx for f32");
  decoder.read_rows(operation, type, {type});
}

template <double (*kFunction)(double)>
void translate_approximate(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  if (!decoder.take("approx") || type != Type::f32) decoder.reject("expected .approx and f32");
  operation.execute = unary_f32<Approximate<kFunction>>(decoder);
  decoder.read_rows(operation, type, {type});
}

void translate_reciprocal_root(Decoder& decoder, Operation& operation) {
  if (!decoder.instruction().has("f64")) return translate_approximate<reciprocal_root>(decoder, operation);
  if (!decoder.take("approx") || decoder.take_type() != Type::f64) decoder.reject(".approx is expected");
  operation.execute = decoder.take("ftz") ? &unary<OfUpperWord<ReciprocalRoot>, double, double>
                                          : &unary<ReciprocalRoot, double, double>;
  decoder.read_rows(operation, Type::f64, {Type::f64});
}

void translate_divide(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  const std::size_t way = decoder.take_one_of({"rn", "approx", "full"});
  if (type == Type::f64 && way == 0)
    operation.execute = &binary<Divide, double, double, double>;
  else if (type == Type::f32 && way < 3)
    operation.execute =
        decoder.take("ftz") ? &binary<Flush<Divide>, float, float, float> : &binary<Divide, float, float, float>;
  else
    decoder.reject("expected .rn, or .approx or .full for f32");
  decoder.read_rows(operation, type, {type, type});
}

constexpr Opcode kOpcodes[] = {
    {"rcp", translate_exact<Reciprocal>},      {"sqrt", translate_exact<SquareRoot>},
    {"rsqrt", translate_reciprocal_root},      {"ex2", translate_approximate<power_of_two>},
    {"lg2", translate_approximate<logarithm>}, {"sin", translate_approximate<sine>},
    {"cos", translate_approximate<cosine>},    {"tanh", translate_approximate<hyperbolic_tangent>},
};
// Integers have a div, too.
constexpr Opcode kDivide[] = {{"div", translate_divide}};

}  // namespace

std::span<const Opcode> function_opcodes() { return kOpcodes; }
std::span<const Opcode> float_division_opcodes() { return kDivide; }

}  // namespace gradring::simulated_gpu
