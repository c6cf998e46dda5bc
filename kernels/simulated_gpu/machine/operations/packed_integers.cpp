// SPDX-License-Identifier: Apache-2.0
// dp4a, dp2a, sad, mul24, mad24, vabsdiff4; lop3, bmsk, szext, fns, cnot.
//
// Source    PTX ISA 9.0: 9.7.1 Integer Arithmetic Instructions, 9.7.8 Logic and Shift Instructions, 9.7.17 Scalar Video
//           Instructions.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;
using U32 = std::uint32_t;
using S32 = std::int32_t;

/// Part `i` of a word, of kBits bits; extended by its sign if it is signed.
template <unsigned kBits>
S32 part(U32 word, unsigned i, bool is_signed) {
  const U32 bits = word >> (kBits * i) & ((1u << kBits) - 1);
  return is_signed ? static_cast<S32>(bits << (32 - kBits)) >> (32 - kBits) : static_cast<S32>(bits);
}

struct DotDetails {
  bool is_signed_a = false, is_signed_b = false;
  bool takes_upper = false;  ///< dp2a.hi: the upper two bytes of b
  bool of_halves = false;    ///< dp2a
};

void dot(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const DotDetails*>(operation.details);
  const U32* const a = warp.row<U32>(operation.a);
  const U32* const b = warp.row<U32>(operation.b);
  const U32* const c = warp.row<U32>(operation.c);
  for_each_lane(active, [&](unsigned lane) {
    U32 sum = c[lane];
    const auto add = [&](S32 x, S32 y) { sum += static_cast<U32>(x) * static_cast<U32>(y); };
    for (unsigned i = 0; i < (details.of_halves ? 2u : 4u); ++i) {
      if (details.of_halves)
        add(part<16>(a[lane], i, details.is_signed_a),
            part<8>(b[lane], i + (details.takes_upper ? 2 : 0), details.is_signed_b));
      else
        add(part<8>(a[lane], i, details.is_signed_a), part<8>(b[lane], i, details.is_signed_b));
    }
    warp.row<U32>(operation.d)[lane] = sum;
  });
}

template <bool kOfHalves>
void translate_dot(Decoder& decoder, Operation& operation) {
  DotDetails details{.of_halves = kOfHalves};
  if (kOfHalves) details.takes_upper = decoder.take_one_of({"lo", "hi"}) == 1;
  const Type a = decoder.take_type(), b = decoder.take_type();
  if ((a != Type::u32 && a != Type::s32) || (b != Type::u32 && b != Type::s32))
    decoder.reject("types u32 or s32 are expected");
  details.is_signed_a = a == Type::s32;
  details.is_signed_b = b == Type::s32;
  decoder.read_rows(operation, Type::b32, {Type::b32, Type::b32, Type::b32});
  operation.details = decoder.keep_details(details);
  operation.execute = &dot;
}

/// c + |a - b|
struct SumOfDifference {
  template <class T, class C>
  C operator()(T a, T b, C c) const {
    const auto wide_a = static_cast<__int128_t>(a), wide_b = static_cast<__int128_t>(b);
    return static_cast<C>(static_cast<__uint128_t>(c) +
                          static_cast<__uint128_t>(wide_a < wide_b ? wide_b - wide_a : wide_a - wide_b));
  }
};

void translate_sad(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  const Type sum = bits_of(type);
  decoder.read_rows(operation, sum, {type, type, sum});
  operation.execute = choose_integer(decoder, type, []<class T> { return &ternary<SumOfDifference, T, T, T, T>; });
}

/// Bits of the 48-bit product of the lower 24 bits of a and b.
template <bool kHigh>
struct Multiply24 {
  template <class T>
  T operator()(T a, T b) const {
    const auto extended = [](T value) {
      return static_cast<std::int64_t>(static_cast<T>(static_cast<U32>(value) << 8) >> 8);
    };
    return static_cast<T>(extended(a) * extended(b) >> (kHigh ? 16 : 0));
  }
};

template <bool kHigh>
struct MultiplyAdd24 {
  template <class T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(static_cast<U32>(Multiply24<kHigh>{}(a, b)) + static_cast<U32>(c));
  }
};

template <bool kAdds>
void translate_24(Decoder& decoder, Operation& operation) {
  constexpr unsigned kSources = kAdds ? 3 : 2;
  const std::size_t half = decoder.take_one_of({"lo", "hi"});
  const Type type = take_type_and_rows<kSources>(decoder, operation);
  operation.execute = choose_type<U32, S32>(decoder, type, [&]<class T>() -> Handler {
    if constexpr (kAdds)
      return half == 1 ? &ternary<MultiplyAdd24<true>, T, T, T, T> : &ternary<MultiplyAdd24<false>, T, T, T, T>;
    else
      return half == 1 ? &binary<Multiply24<true>, T, T, T> : &binary<Multiply24<false>, T, T, T>;
  });
}

/// vabsdiff4.u32.u32.u32.add d, a, b, c: the absolute differences of four bytes, summed if .add is there.
void absolute_differences(const Operation& operation, Warp& warp, Mask active) {
  for_each_lane(active, [&](unsigned lane) {
    const U32 a = warp.row<U32>(operation.a)[lane], b = warp.row<U32>(operation.b)[lane];
    U32 bytes = 0, sum = warp.row<U32>(operation.c)[lane];
    for (unsigned i = 0; i < 4; ++i) {
      const auto difference = static_cast<U32>(std::abs(part<8>(a, i, false) - part<8>(b, i, false)));
      bytes |= difference << 8 * i;
      sum += difference;
    }
    warp.row<U32>(operation.d)[lane] = operation.immediate != 0 ? sum : bytes;
  });
}

void translate_absolute_differences(Decoder& decoder, Operation& operation) {
  for (int i = 0; i < 3; ++i)
    if (decoder.take_type() != Type::u32) decoder.reject("types u32 are expected");
  operation.immediate = decoder.take("add");
  decoder.read_rows(operation, Type::u32, {Type::u32, Type::u32, Type::u32});
  operation.execute = &absolute_differences;
}

/// Bit (a, b, c) of the table, bit by bit.
void look_up(const Operation& operation, Warp& warp, Mask active) {
  const U32* const a = warp.row<U32>(operation.a);
  const U32* const b = warp.row<U32>(operation.b);
  const U32* const c = warp.row<U32>(operation.c);
  U32* const d = warp.row<U32>(operation.d);
  U32 results[kWarpSize] = {};
  for (unsigned i = 0; i < 8; ++i) {
    if ((operation.immediate >> i & 1) == 0) continue;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      results[lane] |= ((i & 4) != 0 ? a[lane] : ~a[lane]) & ((i & 2) != 0 ? b[lane] : ~b[lane]) &
                       ((i & 1) != 0 ? c[lane] : ~c[lane]);
  }
  for_lanes(active, [&](unsigned lane) { d[lane] = results[lane]; });
}

struct TestDetails {
  Slot predicate = 0, other = 0;
  Mask flip = 0;  ///< all lanes if the other one is negated
  bool with_or = false;
};

/// lop3.or.b32 d|p, a, b, c, table, q: p = (d != 0) or q.
void look_up_and_test(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const TestDetails*>(operation.details);
  look_up(operation, warp, active);
  const Mask other = warp.predicate(details.other) ^ details.flip;
  const Mask found = lanes_where([](U32 value) { return value != 0; }, warp.row<U32>(operation.d));
  warp.set_predicate(details.predicate, active, details.with_or ? found | other : found & other);
}

void translate_lop3(Decoder& decoder, Operation& operation) {
  const std::size_t combination = decoder.take_one_of({"or", "and"});
  if (decoder.take_type() != Type::b32) decoder.reject("type b32 is expected");
  const bool tests = combination < 2;
  decoder.finish(tests ? 6 : 5);
  const auto [value, predicate] = decoder.results(0);
  operation.d = decoder.destination(*value, Type::b32);
  operation.a = decoder.source(1, Type::b32);
  operation.b = decoder.source(2, Type::b32);
  operation.c = decoder.source(3, Type::b32);
  operation.immediate = decoder.constant(decoder.operand(4));
  operation.execute = &look_up;
  if (!tests) return;
  const Decoder::Predicate other = decoder.predicate(decoder.operand(5));
  operation.details = decoder.keep_details(
      TestDetails{decoder.destination(*predicate, Type::pred), other.slot, other.flip, combination == 0});
  operation.execute = &look_up_and_test;
}

/// bmsk: b bits from bit a on.
template <bool kWraps>
struct MaskOfBits {
  U32 operator()(U32 first, U32 count) const {
    if (kWraps) first &= 31, count &= 31;
    if (first >= 32) return 0;
    const U32 bits = count >= 32 ? ~U32{0} : (1u << count) - 1;
    return bits << first;
  }
};

void translate_bmsk(Decoder& decoder, Operation& operation) {
  const std::size_t mode = decoder.take_one_of({"clamp", "wrap"});
  if (mode > 1 || decoder.take_type() != Type::b32) decoder.reject("expected .clamp or .wrap, and b32");
  decoder.read_rows(operation, Type::b32, {Type::b32, Type::b32});
  operation.execute = mode == 1 ? &binary<MaskOfBits<true>, U32, U32, U32> : &binary<MaskOfBits<false>, U32, U32, U32>;
}

/// szext: the lower b bits of a, extended by their sign for a signed type.
template <bool kWraps>
struct ExtendField {
  template <class T>
  T operator()(T a, U32 count) const {
    if (kWraps) count &= 31;
    if (count >= 32) return a;
    if (count == 0) return 0;
    return static_cast<T>(static_cast<T>(static_cast<U32>(a) << (32 - count)) >> (32 - count));
  }
};

void translate_szext(Decoder& decoder, Operation& operation) {
  const std::size_t mode = decoder.take_one_of({"clamp", "wrap"});
  if (mode > 1) decoder.reject(".clamp or .wrap is expected");
  const Type type = decoder.take_type();
  decoder.read_rows(operation, type, {type, Type::u32});
  operation.execute = choose_type<U32, S32>(decoder, type, [&]<class T>() -> Handler {
    return mode == 1 ? &binary<ExtendField<true>, T, T, U32> : &binary<ExtendField<false>, T, T, U32>;
  });
}

/// fns: the n-th bit that is set in a mask, from bit `base` on; backwards for negative n; n = 0: bit `base` itself.
struct FindNthSet {
  U32 operator()(U32 mask, U32 base, S32 n) const {
    if (base >= 32) return ~U32{0};
    if (n == 0) return (mask >> base & 1) != 0 ? base : ~U32{0};
    const int step = n > 0 ? 1 : -1;
    std::int64_t left = std::abs(std::int64_t{n});
    for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step)
      if ((mask >> bit & 1) != 0 && --left == 0) return static_cast<U32>(bit);
    return ~U32{0};
  }
};

void translate_fns(Decoder& decoder, Operation& operation) {
  if (decoder.take_type() != Type::b32) decoder.reject("type b32 is expected");
  decoder.read_rows(operation, Type::b32, {Type::b32, Type::b32, Type::s32});
  operation.execute = &ternary<FindNthSet, U32, U32, U32, S32>;
}

using IsZero = decltype([]<class T>(T a) { return static_cast<T>(a == 0 ? 1 : 0); });

void translate_cnot(Decoder& decoder, Operation& operation) {
  const Type type = take_type_and_rows<1>(decoder, operation);
  operation.execute = choose_bits(decoder, type, []<class T> { return &unary<IsZero, T, T>; });
}

constexpr Opcode kOpcodes[] = {
    {"dp4a", translate_dot<false>}, {"dp2a", translate_dot<true>}, {"sad", translate_sad},
    {"mul24", translate_24<false>}, {"mad24", translate_24<true>}, {"vabsdiff4", translate_absolute_differences},
    {"lop3", translate_lop3},       {"bmsk", translate_bmsk},      {"szext", translate_szext},
    {"fns", translate_fns},         {"cnot", translate_cnot},
};

}  // namespace

std::span<const Opcode> packed_integer_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
