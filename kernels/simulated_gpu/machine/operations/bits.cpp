// SPDX-License-Identifier: Apache-2.0
// and, or, xor, not of bits and of predicates; shifts; counts and fields of bits.
#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using ptx::Type;

using And = decltype([]<class T>(T a, T b) { return static_cast<T>(a & b); });
using Or = decltype([]<class T>(T a, T b) { return static_cast<T>(a | b); });
using Xor = decltype([]<class T>(T a, T b) { return static_cast<T>(a ^ b); });
using Not = decltype([]<class T>(T a) { return static_cast<T>(~a); });
using CountOnes = decltype([]<class T>(T a) { return static_cast<std::uint32_t>(std::popcount(a)); });
using CountLeadingZeros = decltype([]<class T>(T a) { return static_cast<std::uint32_t>(std::countl_zero(a)); });

// Shifts by more than the width are clamped to it.

struct ShiftLeft {
  template <class T>
  T operator()(T a, std::uint32_t count) const {
    constexpr std::uint32_t kWidth = 8 * sizeof(T);
    return static_cast<T>(count < kWidth ? static_cast<std::common_type_t<T, unsigned>>(a) << (count & (kWidth - 1))
                                         : 0);
  }
};

struct ShiftRight {
  template <class T>
  T operator()(T a, std::uint32_t count) const {
    constexpr std::uint32_t kWidth = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> std::min(count, kWidth - 1));
    return static_cast<T>(count < kWidth ? a >> (count & (kWidth - 1)) : 0);
  }
};

/// shf: the upper word of (high, low) << count, or the lower word of (high, low) >> count.
template <bool kLeft, bool kWraps>
struct FunnelShift {
  std::uint32_t operator()(std::uint32_t low, std::uint32_t high, std::uint32_t count) const {
    count = kWraps ? count & 31 : std::min(count, 32u);
    const std::uint64_t both = std::uint64_t{high} << 32 | low;
    return static_cast<std::uint32_t>(kLeft ? both >> (32 - count) : both >> count);
  }
};

struct Reverse {
  template <class T>
  T operator()(T a) const {
    T reversed = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit) reversed |= (a >> bit & T{1}) << (8 * sizeof(T) - 1 - bit);
    return reversed;
  }
};

/// bfe: `count` bits from `first`, extended by the sign for signed types.
struct ExtractField {
  template <class T>
  T operator()(T a, std::uint32_t first, std::uint32_t count) const {
    using U = std::make_unsigned_t<T>;
    constexpr std::uint32_t kWidth = 8 * sizeof(T);
    first &= 0xff;
    count &= 0xff;
    if (count == 0) return 0;
    const bool fills = std::is_signed_v<T> && (static_cast<U>(a) >> std::min(first + count - 1, kWidth - 1) & 1) != 0;
    const U kept = count >= kWidth ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << count) - 1);
    const U field = first < kWidth ? static_cast<U>(static_cast<U>(a) >> first) : U{0};
    const U below =
        first < kWidth ? static_cast<U>(static_cast<U>(~U{0}) >> first) : U{0};  // bits that are not made up
    return static_cast<T>((field & kept & below) | (fills ? static_cast<U>(~(kept & below)) : U{0}));
  }
};

/// bfi: the lower `count` bits of a, in b from `first` on.
struct InsertField {
  template <class T>
  T operator()(T a, T b, std::uint32_t first, std::uint32_t count) const {
    constexpr std::uint32_t kWidth = 8 * sizeof(T);
    first &= 0xff;
    count &= 0xff;
    if (first >= kWidth || count == 0) return b;
    const T kept = static_cast<T>((count >= kWidth ? static_cast<T>(~T{0}) : (T{1} << count) - 1) << first);
    return static_cast<T>(((a << first) & kept) | (b & ~kept));
  }
};

/// bfind: the uppermost bit that is not a copy of the sign; all ones without such a bit. shiftamt: how far it is from
/// the top.
template <bool kShifts>
struct FindBit {
  template <class T>
  std::uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (bits == 0) return ~std::uint32_t{0};
    const auto zeros = static_cast<std::uint32_t>(std::countl_zero(bits));
    return kShifts ? zeros : 8 * sizeof(T) - 1 - zeros;
  }
};

/// prmt: each of the four selectors takes one of the eight bytes of (b, a), or spreads its sign.
struct PermuteBytes {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t selectors) const {
    const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
    std::uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t selector = selectors >> (4 * i) & 0xf;
      std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (selector & 7))) & 0xff;
      if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};

/// prmt.f4e, ...: the selectors of a mode, by the lower two bits of c.
template <std::size_t kMode>
struct PermuteByMode {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    constexpr std::uint32_t kSelectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543},  // f4e: forward 4 extract
        {0x5670, 0x6701, 0x7012, 0x0123},  // b4e: backward 4 extract
        {0x0000, 0x1111, 0x2222, 0x3333},  // rc8: replicate 8
        {0x3210, 0x3211, 0x3222, 0x3333},  // ecl: edge clamp left
        {0x0000, 0x1110, 0x2210, 0x3210},  // ecr: edge clamp right
        {0x1010, 0x3232, 0x1010, 0x3232},  // rc16: replicate 16
    };
    return PermuteBytes{}(a, b, kSelectors[kMode][c & 3]);
  }
};

template <std::size_t... kModes>
Handler permute_by_mode(std::size_t mode, std::index_sequence<kModes...>) {
  using U32 = std::uint32_t;
  constexpr Handler kHandlers[] = {&ternary<PermuteByMode<kModes>, U32, U32, U32, U32>...};
  return kHandlers[mode];
}

/// d = F(a, b) of predicates.
template <class F>
void combine_predicates(const Operation& operation, Warp& warp, Mask active) {
  warp.set_predicate(operation.d, active, F{}(warp.predicate(operation.a), warp.predicate(operation.b)));
}

void invert_predicate(const Operation& operation, Warp& warp, Mask active) {
  warp.set_predicate(operation.d, active, ~warp.predicate(operation.a));
}

template <class F>
void translate_logic(Decoder& decoder, Operation& operation) {
  const Type type = take_type_and_rows<2>(decoder, operation);
  if (type == Type::pred)
    operation.execute = &combine_predicates<F>;
  else
    operation.execute = choose_bits(decoder, type, []<class T> { return &binary<F, T, T, T>; });
}

void translate_not(Decoder& decoder, Operation& operation) {
  const Type type = take_type_and_rows<1>(decoder, operation);
  if (type == Type::pred)
    operation.execute = &invert_predicate;
  else
    operation.execute = choose_bits(decoder, type, []<class T> { return &unary<Not, T, T>; });
}

template <class F>
void translate_shift(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  decoder.read_rows(operation, type, {type, Type::u32});
  operation.execute = choose_integer(decoder, type, []<class T> { return &binary<F, T, T, std::uint32_t>; });
}

void translate_funnel_shift(Decoder& decoder, Operation& operation) {
  const bool is_left = decoder.take_one_of({"l", "r"}) == 0;
  const bool wraps = decoder.take_one_of({"wrap", "clamp"}) == 0;
  if (decoder.take_type() != Type::b32) decoder.reject("type b32 is expected");
  decoder.read_rows(operation, Type::b32, {Type::b32, Type::b32, Type::u32});
  using U32 = std::uint32_t;
  operation.execute = is_left ? wraps ? &ternary<FunnelShift<true, true>, U32, U32, U32, U32>
                                      : &ternary<FunnelShift<true, false>, U32, U32, U32, U32>
                      : wraps ? &ternary<FunnelShift<false, true>, U32, U32, U32, U32>
                              : &ternary<FunnelShift<false, false>, U32, U32, U32, U32>;
}

template <class F>
void translate_count(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  decoder.read_rows(operation, Type::u32, {type});
  operation.execute =
      choose_type<std::uint32_t, std::uint64_t>(decoder, type, []<class T> { return &unary<F, std::uint32_t, T>; });
}

void translate_reverse(Decoder& decoder, Operation& operation) {
  const Type type = take_type_and_rows<1>(decoder, operation);
  operation.execute =
      choose_type<std::uint32_t, std::uint64_t>(decoder, type, []<class T> { return &unary<Reverse, T, T>; });
}

void translate_extract(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  decoder.read_rows(operation, type, {type, Type::u32, Type::u32});
  operation.execute = choose_type<std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>(
      decoder, type, []<class T> { return &ternary<ExtractField, T, T, std::uint32_t, std::uint32_t>; });
}

template <class T>
void insert_field(const Operation& operation, Warp& warp, Mask active) {
  map_lanes(active, InsertField{}, warp.row<T>(operation.d), warp.row<T>(operation.a), warp.row<T>(operation.b),
            warp.row<std::uint32_t>(operation.c), warp.row<std::uint32_t>(operation.slots[0]));
}

void translate_insert(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  decoder.finish(5);
  operation.d = decoder.destination(0, type);
  operation.a = decoder.source(1, type);
  operation.b = decoder.source(2, type);
  operation.c = decoder.source(3, Type::u32);
  decoder.keep(operation, {decoder.source(4, Type::u32)});
  operation.execute =
      choose_type<std::uint32_t, std::uint64_t>(decoder, type, []<class T> { return &insert_field<T>; });
}

void translate_find(Decoder& decoder, Operation& operation) {
  const bool shifts = decoder.take("shiftamt");
  const Type type = decoder.take_type();
  decoder.read_rows(operation, Type::u32, {type});
  operation.execute =
      choose_type<std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>(decoder, type, [&]<class T>() -> Handler {
        return shifts ? &unary<FindBit<true>, std::uint32_t, T> : &unary<FindBit<false>, std::uint32_t, T>;
      });
}

void translate_permute(Decoder& decoder, Operation& operation) {
  const std::size_t mode = decoder.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (decoder.take_type() != Type::b32) decoder.reject("type b32 is expected");
  decoder.read_rows(operation, Type::b32, {Type::b32, Type::b32, Type::b32});
  operation.execute = mode < 6 ? permute_by_mode(mode, std::make_index_sequence<6>{})
                               : &ternary<PermuteBytes, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
}

constexpr Opcode kOpcodes[] = {
    {"and", translate_logic<And>},   {"or", translate_logic<Or>},          {"xor", translate_logic<Xor>},
    {"not", translate_not},          {"shl", translate_shift<ShiftLeft>},  {"shr", translate_shift<ShiftRight>},
    {"shf", translate_funnel_shift}, {"popc", translate_count<CountOnes>}, {"clz", translate_count<CountLeadingZeros>},
    {"brev", translate_reverse},     {"bfe", translate_extract},           {"bfi", translate_insert},
    {"bfind", translate_find},       {"prmt", translate_permute},
};

}  // namespace

std::span<const Opcode> bit_opcodes() { return kOpcodes; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
