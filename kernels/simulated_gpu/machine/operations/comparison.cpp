// SPDX-License-Identifier: Apache-2.0
// setp, selp.
#include <functional>

#include "kernels/simulated_gpu/machine/operations/floating_point.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using ptx::Type;

/// equ, ltu, ...: holds for NaN as well.
template <class F>
struct OrNan {
  template <class T>
  bool operator()(T a, T b) const {
    return F{}(a, b) || a != a || b != b;
  }
};

/// ne: does not hold for NaN.
using OrderedNotEqual = decltype([](auto a, auto b) { return a < b || a > b; });
using BothNumbers = decltype([](auto a, auto b) { return a == a && b == b; });
using OneIsNan = decltype([](auto a, auto b) { return a != a || b != b; });

template <class F>
struct OfFlushed {
  bool operator()(float a, float b) const { return F{}(flushed(a), flushed(b)); }
};

/// How a result is combined with operand c, before it is written to d, and its complement to e: setp.lt.and.f32 d|e,
/// a, b, !c.
struct CompareDetails {
  enum class Combination : std::uint8_t { with_and, with_or, with_xor, none };
  Combination combination = Combination::none;
  Mask flip = 0;  ///< all lanes if c is negated
  Slot e = 0;
};

void combine(const Operation& operation, Warp& warp, Mask active, Mask result) {
  const auto& details = *static_cast<const CompareDetails*>(operation.details);
  const Mask c = warp.predicate(operation.c) ^ details.flip;
  Mask complement = ~result;
  switch (details.combination) {
    case CompareDetails::Combination::none: break;
    case CompareDetails::Combination::with_and: result &= c, complement &= c; break;
    case CompareDetails::Combination::with_or: result |= c, complement |= c; break;
    case CompareDetails::Combination::with_xor: result ^= c, complement ^= c; break;
  }
  warp.set_predicate(operation.d, active, result);
  warp.set_predicate(details.e, active, complement);
}

template <class F, class T>
void compare(const Operation& operation, Warp& warp, Mask active) {
  const Mask result = lanes_where(F{}, warp.row<T>(operation.a), warp.row<T>(operation.b));
  if (operation.details != nullptr) return combine(operation, warp, active, result);
  warp.set_predicate(operation.d, active, result);
}

template <class F>
Handler of_floats(Decoder& decoder, Type type, bool flushes) {
  if (flushes && type == Type::f32) return &compare<OfFlushed<F>, float>;
  return choose_type<float, double>(decoder, type, []<class T> { return &compare<F, T>; });
}

template <class F>
Handler of_integers(Decoder& decoder, Type type) {
  return choose_integer(decoder, type, []<class T> { return &compare<F, T>; });
}

template <class F>
Handler of_bits(Decoder& decoder, Type type) {
  return of_integers<F>(decoder, bits_of(type));
}

constexpr Word<Handler (*)(Decoder&, Type, bool flushes)> kFloatComparisons[] = {
    {"eq", of_floats<std::equal_to<>>},
    {"ne", of_floats<OrderedNotEqual>},
    {"lt", of_floats<std::less<>>},
    {"le", of_floats<std::less_equal<>>},
    {"gt", of_floats<std::greater<>>},
    {"ge", of_floats<std::greater_equal<>>},
    {"equ", of_floats<OrNan<std::equal_to<>>>},
    {"neu", of_floats<std::not_equal_to<>>},
    {"ltu", of_floats<OrNan<std::less<>>>},
    {"leu", of_floats<OrNan<std::less_equal<>>>},
    {"gtu", of_floats<OrNan<std::greater<>>>},
    {"geu", of_floats<OrNan<std::greater_equal<>>>},
    {"num", of_floats<BothNumbers>},
    {"nan", of_floats<OneIsNan>},
};
constexpr Word<Handler (*)(Decoder&, Type)> kIntegerComparisons[] = {
    {"eq", of_bits<std::equal_to<>>},    {"ne", of_bits<std::not_equal_to<>>},
    {"lt", of_integers<std::less<>>},    {"le", of_integers<std::less_equal<>>},
    {"gt", of_integers<std::greater<>>}, {"ge", of_integers<std::greater_equal<>>},
    {"lo", of_integers<std::less<>>},    {"ls", of_integers<std::less_equal<>>},
    {"hi", of_integers<std::greater<>>}, {"hs", of_integers<std::greater_equal<>>},
};

Handler comparison_of(Decoder& decoder, Type type) {
  if (type == Type::f32 || type == Type::f64) {
    const bool flushes = decoder.take("ftz");
    if (const auto choose = take_from(decoder, kFloatComparisons)) return choose(decoder, type, flushes);
  } else if (const auto choose = take_from(decoder, kIntegerComparisons)) {
    return choose(decoder, type);
  }
  decoder.reject("the comparison is not known");
}

void translate_setp(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  operation.execute = comparison_of(decoder, type);
  const std::size_t combination = decoder.take_one_of({"and", "or", "xor"});
  const bool combines = combination < 3;
  decoder.finish(combines ? 4 : 3);
  const auto [d, e] = decoder.results(0);
  operation.d = decoder.destination(*d, Type::pred);
  operation.a = decoder.source(1, type);
  operation.b = decoder.source(2, type);
  if (!combines && e->kind == ptx::Operand::Kind::sink) return;
  const Decoder::Predicate c =
      combines ? decoder.predicate(decoder.operand(3)) : Decoder::Predicate{decoder.frame().of_true()};
  operation.c = c.slot;
  operation.details = decoder.keep_details(CompareDetails{static_cast<CompareDetails::Combination>(combination), c.flip,
                                                          decoder.destination(*e, Type::pred)});
}

template <class T>
void select(const Operation& operation, Warp& warp, Mask active) {
  T* const d = warp.row<T>(operation.d);
  const T* const a = warp.row<T>(operation.a);
  const T* const b = warp.row<T>(operation.b);
  const Mask first = warp.predicate(operation.c);
#pragma GCC ivdep
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const T chosen = (first & kLaneBits[lane]) != 0 ? a[lane] : b[lane];
    d[lane] = (active & kLaneBits[lane]) != 0 ? chosen : d[lane];
  }
}

void translate_selp(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  decoder.read_rows(operation, type, {type, type, Type::pred});
  operation.execute = choose_bits(decoder, type, []<class T> { return &select<T>; });
}

constexpr Opcode kOpcodes[] = {{"setp", translate_setp}, {"selp", translate_selp}};

}  // namespace

std::span<const Opcode> comparison_opcodes() { return kOpcodes; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
