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
struct OrderedNotEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b || a > b;
  }
};

struct BothNumbers {
  template <class T>
  bool operator()(T a, T b) const {
    return a == a && b == b;
  }
};

struct OneIsNan {
  template <class T>
  bool operator()(T a, T b) const {
    return a != a || b != b;
  }
};

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
  Mask& d = warp.predicate(operation.d);
  d = (d & ~active) | (result & active);
  Mask& e = warp.predicate(details.e);
  e = (e & ~active) | (complement & active);
}

template <class F, class T>
void compare(const Operation& operation, Warp& warp, Mask active) {
  const Mask result = lanes_where(F{}, warp.row<T>(operation.a), warp.row<T>(operation.b));
  if (operation.details != nullptr) return combine(operation, warp, active, result);
  Mask& d = warp.predicate(operation.d);
  d = (d & ~active) | (result & active);
}

template <class F>
Handler of_floats(Decoder& decoder, Type type, bool flushes) {
  if (flushes && type == Type::f32) return &compare<OfFlushed<F>, float>;
  return choose_type<float, double>(decoder, type, []<class T> { return &compare<F, T>; });
}

Handler float_comparison(Decoder& decoder, Type type) {
  const bool flushes = decoder.take("ftz");
  switch (decoder.take_one_of(
      {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"})) {
    case 0: return of_floats<std::equal_to<>>(decoder, type, flushes);
    case 1: return of_floats<OrderedNotEqual>(decoder, type, flushes);
    case 2: return of_floats<std::less<>>(decoder, type, flushes);
    case 3: return of_floats<std::less_equal<>>(decoder, type, flushes);
    case 4: return of_floats<std::greater<>>(decoder, type, flushes);
    case 5: return of_floats<std::greater_equal<>>(decoder, type, flushes);
    case 6: return of_floats<OrNan<std::equal_to<>>>(decoder, type, flushes);
    case 7: return of_floats<std::not_equal_to<>>(decoder, type, flushes);
    case 8: return of_floats<OrNan<std::less<>>>(decoder, type, flushes);
    case 9: return of_floats<OrNan<std::less_equal<>>>(decoder, type, flushes);
    case 10: return of_floats<OrNan<std::greater<>>>(decoder, type, flushes);
    case 11: return of_floats<OrNan<std::greater_equal<>>>(decoder, type, flushes);
    case 12: return of_floats<BothNumbers>(decoder, type, flushes);
    case 13: return of_floats<OneIsNan>(decoder, type, flushes);
    default: decoder.reject("the comparison is not known");
  }
}

template <class F>
Handler of_integers(Decoder& decoder, Type type) {
  return choose_type<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>(
      decoder, type, []<class T> { return &compare<F, T>; });
}

Handler integer_comparison(Decoder& decoder, Type type) {
  switch (decoder.take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"})) {
    case 0: return of_integers<std::equal_to<>>(decoder, bits_of(type));
    case 1: return of_integers<std::not_equal_to<>>(decoder, bits_of(type));
    case 2:
    case 6: return of_integers<std::less<>>(decoder, type);
    case 3:
    case 7: return of_integers<std::less_equal<>>(decoder, type);
    case 4:
    case 8: return of_integers<std::greater<>>(decoder, type);
    case 5:
    case 9: return of_integers<std::greater_equal<>>(decoder, type);
    default: decoder.reject("the comparison is not known");
  }
}

void translate_setp(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  const bool is_float = type == Type::f32 || type == Type::f64;
  operation.execute = is_float ? float_comparison(decoder, type) : integer_comparison(decoder, type);
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
  decoder.finish(4);
  operation.d = decoder.destination(0, type);
  operation.a = decoder.source(1, type);
  operation.b = decoder.source(2, type);
  operation.c = decoder.source(3, Type::pred);
  operation.execute = choose_bits(decoder, type, []<class T> { return &select<T>; });
}

constexpr Opcode kOpcodes[] = {{"setp", translate_setp}, {"selp", translate_selp}};

}  // namespace

std::span<const Opcode> comparison_opcodes() { return kOpcodes; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
