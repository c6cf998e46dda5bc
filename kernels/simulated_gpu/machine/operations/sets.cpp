// SPDX-License-Identifier: Apache-2.0
// set, slct, testp, copysign, isspacep.
//
// Source    PTX ISA 9.0: 9.7.6 Comparison and Selection Instructions, 9.7.7 Half Precision Comparison Instructions,
//           9.7.3 Floating-Point Instructions, 9.7.9 Data Movement and Conversion Instructions.
#include <bit>
#include <cmath>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/floating_point.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

/// Which of the four outcomes of a comparison make it hold.
struct Comparison {
  bool less = false, equal = false, greater = false, unordered = false;
};

Comparison take_comparison(Decoder& decoder) {
  const std::size_t function = decoder.take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu",
                                                    "gtu", "geu", "num", "nan", "lo", "ls", "hi", "hs"});
  constexpr Comparison kOrdered[] = {{.equal = true},   {.less = true, .greater = true},
                                     {.less = true},    {.less = true, .equal = true},
                                     {.greater = true}, {.equal = true, .greater = true}};
  if (function > 17) decoder.reject("the comparison is not known");
  if (function == 12) return {.less = true, .equal = true, .greater = true};
  if (function == 13) return {.unordered = true};
  if (function > 13) return kOrdered[function - 14 + 2];
  Comparison made = kOrdered[function % 6];
  made.unordered = function >= 6;
  return made;
}

/// The numbers of a row, or of the halves of one.
struct SetType {
  Type type = Type::none;
  bool is_pair = false;

  bool is_half() const { return type == Type::f16 || type == Type::bf16; }
  Type in_register() const { return is_pair ? Type::b32 : type; }
};

SetType take_set_type(Decoder& decoder) {
  const std::string_view name = decoder.next();
  if (name != "f16x2" && name != "bf16x2") return {decoder.take_type(), false};
  decoder.take(name);
  return {name == "f16x2" ? Type::f16 : Type::bf16, true};
}

struct SetDetails {
  Comparison comparison;
  SetType to, from;
  bool flushes = false;
  std::size_t combination = 3;  ///< and, or, xor, none
  Mask flip = 0;
};

/// Numbers as they are compared: 64-bit integers do not fit in a double.
bool holds(const SetDetails& details, Warp& warp, const Operation& operation, unsigned lane, unsigned half) {
  const Comparison& comparison = details.comparison;
  const auto compare = [&](auto a, auto b) {
    return a < b ? comparison.less : a > b ? comparison.greater : a == b ? comparison.equal : comparison.unordered;
  };
  const auto rows = [&]<class T> { return compare(warp.row<T>(operation.a)[lane], warp.row<T>(operation.b)[lane]); };
  switch (details.from.type) {
    case Type::b16:
    case Type::u16: return rows.template operator()<std::uint16_t>();
    case Type::s16: return rows.template operator()<std::int16_t>();
    case Type::b32:
    case Type::u32: return rows.template operator()<std::uint32_t>();
    case Type::s32: return rows.template operator()<std::int32_t>();
    case Type::b64:
    case Type::u64: return rows.template operator()<std::uint64_t>();
    case Type::s64: return rows.template operator()<std::int64_t>();
    case Type::f64: return rows.template operator()<double>();
    case Type::f32: {
      const float a = warp.row<float>(operation.a)[lane], b = warp.row<float>(operation.b)[lane];
      return details.flushes ? compare(flushed(a), flushed(b)) : compare(a, b);
    }
    default: break;
  }
  const Half type = details.from.type == Type::f16 ? Half::f16 : Half::bf16;
  const auto number = [&](Slot slot) {
    const std::uint16_t bits = details.from.is_pair
                                   ? static_cast<std::uint16_t>(warp.row<std::uint32_t>(slot)[lane] >> 16 * half)
                                   : warp.row<std::uint16_t>(slot)[lane];
    const bool is_subnormal = (bits & (type == Half::f16 ? 0x7C00 : 0x7F80)) == 0;
    return to_f32(type, details.flushes && is_subnormal ? static_cast<std::uint16_t>(bits & 0x8000) : bits);
  };
  return compare(number(operation.a), number(operation.b));
}

/// True: all ones, or 1.0.
void set(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const SetDetails*>(operation.details);
  const Mask c = warp.predicate(operation.c) ^ details.flip;
  for_each_lane(active, [&](unsigned lane) {
    std::uint32_t result = 0;
    for (unsigned half = 0; half < (details.from.is_pair ? 2u : 1u); ++half) {
      bool value = holds(details, warp, operation, lane, half);
      const bool other = (c & kLaneBits[lane]) != 0;
      if (details.combination == 0) value = value && other;
      if (details.combination == 1) value = value || other;
      if (details.combination == 2) value = value != other;
      const std::uint32_t one = details.to.type == Type::f16                             ? 0x3C00u
                                : details.to.type == Type::bf16                          ? 0x3F80u
                                : details.to.type == Type::f32                           ? 0x3F800000u
                                : bytes_of(details.to.type) == 2 || details.from.is_pair ? 0xFFFFu
                                                                                         : 0xFFFFFFFFu;
      if (value) result |= one << 16 * half;
    }
    if (bytes_of(details.to.in_register()) == 2)
      warp.row<std::uint16_t>(operation.d)[lane] = static_cast<std::uint16_t>(result);
    else
      warp.row<std::uint32_t>(operation.d)[lane] = result;
  });
}

/// set.lt.and.ftz.f32.f32 d, a, b, c; set.gt.f16x2.f16x2, set.gt.u32.f16x2, set.eq.u32.f16, ...
void translate_set(Decoder& decoder, Operation& operation) {
  SetDetails details{.comparison = take_comparison(decoder), .combination = decoder.take_one_of({"and", "or", "xor"})};
  details.flushes = decoder.take("ftz");
  details.to = take_set_type(decoder);
  details.from = take_set_type(decoder);
  const std::size_t bytes = bytes_of(details.to.type);
  if ((bytes != 2 && bytes != 4) || details.from.type == Type::none || details.from.type == Type::pred)
    decoder.reject("the types are not supported");
  const bool is_mask = details.to.type == Type::u32 || details.to.type == Type::s32;  // 16 bits of it for each half
  if (details.from.is_pair && !details.to.is_pair && !is_mask) decoder.reject("results of a pair are a pair");
  const bool combines = details.combination < 3;
  decoder.finish(combines ? 4 : 3);
  operation.d = decoder.destination(0, details.to.in_register());
  operation.a = decoder.source(1, details.from.in_register());
  operation.b = decoder.source(2, details.from.in_register());
  operation.c = decoder.frame().of_true();
  if (combines) {
    const Decoder::Predicate c = decoder.predicate(decoder.operand(3));
    operation.c = c.slot;
    details.flip = c.flip;
  }
  operation.details = decoder.keep_details(details);
  operation.execute = &set;
}

/// slct d, a, b, c: a if c is not negative; NaN selects b.
template <class T, class C>
void select_by_sign(const Operation& operation, Warp& warp, Mask active) {
  const bool flushes = operation.immediate != 0;
  map_lanes(
      active,
      [=](T a, T b, C c) {
        if constexpr (std::is_same_v<C, float>)
          if (flushes) c = flushed(c);
        return c >= 0 ? a : b;
      },
      warp.row<T>(operation.d), warp.row<T>(operation.a), warp.row<T>(operation.b), warp.row<C>(operation.c));
}

void translate_slct(Decoder& decoder, Operation& operation) {
  operation.immediate = decoder.take("ftz");
  const Type type = decoder.take_type();
  const Type sign = decoder.take_type();
  if (sign != Type::s32 && sign != Type::f32) decoder.reject("a sign of s32 or f32 is expected");
  decoder.read_rows(operation, type, {type, type, sign});
  operation.execute = choose_bits(decoder, type, [&]<class T>() -> Handler {
    return sign == Type::f32 ? &select_by_sign<T, float> : &select_by_sign<T, std::int32_t>;
  });
}

template <class T, int kProperty>
void test_property(const Operation& operation, Warp& warp, Mask active) {
  warp.set_predicate(operation.d, active,
                     lanes_where(
                         [](T a) {
                           const int kind = std::fpclassify(a);
                           switch (kProperty) {
                             case 0: return kind != FP_NAN && kind != FP_INFINITE;
                             case 1: return kind == FP_INFINITE;
                             case 2: return kind != FP_NAN;
                             case 3: return kind == FP_NAN;
                             case 4: return kind == FP_NORMAL;
                             default: return kind == FP_SUBNORMAL;
                           }
                         },
                         warp.row<T>(operation.a)));
}

template <class T>
Handler property_test(std::size_t property) {
  constexpr Handler kTests[] = {&test_property<T, 0>, &test_property<T, 1>, &test_property<T, 2>,
                                &test_property<T, 3>, &test_property<T, 4>, &test_property<T, 5>};
  return kTests[property];
}

void translate_testp(Decoder& decoder, Operation& operation) {
  const std::size_t property =
      decoder.take_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  const Type type = decoder.take_type();
  if (property > 5 || (type != Type::f32 && type != Type::f64)) decoder.reject("a property of f32 or f64 is expected");
  decoder.read_rows(operation, Type::pred, {type});
  operation.execute = type == Type::f32 ? property_test<float>(property) : property_test<double>(property);
}

/// The sign of a, the rest of b.
template <class T>
struct CopySign {
  T operator()(T a, T b) const {
    constexpr T kSign = T{1} << (8 * sizeof(T) - 1);
    return (a & kSign) | (b & ~kSign);
  }
};

void translate_copysign(Decoder& decoder, Operation& operation) {
  const Type type = take_type_and_rows<2>(decoder, operation);
  if (type != Type::f32 && type != Type::f64) decoder.reject("type f32 or f64 is expected");
  operation.execute = choose_type<std::uint32_t, std::uint64_t>(decoder, bits_of(type),
                                                                []<class T> { return &binary<CopySign<T>, T, T, T>; });
}

/// `kOfBlock`: in shared memory, the window of the block itself, and not that of the cluster.
template <StateSpace kSpace, bool kOfBlock = false>
void test_space(const Operation& operation, Warp& warp, Mask active) {
  const std::span<const std::byte> parameters = warp.block().launch().parameters;
  const auto begin = reinterpret_cast<std::uint64_t>(parameters.data());
  const auto is_own = [&](std::uint64_t address) {
    const std::uint32_t rank = static_cast<std::uint32_t>(address) >> kClusterRankShift;
    return rank == 0 || rank - 1 == warp.block().cluster_rank();
  };
  warp.set_predicate(operation.d, active,
                     lanes_where(
                         [&](std::uint64_t address) {
                           const bool is_parameter = address - begin < parameters.size();
                           switch (kSpace) {
                             case StateSpace::shared:
                               return is_in_shared_window(address) && (!kOfBlock || is_own(address));
                             case StateSpace::local: return is_in_local_window(address);
                             case StateSpace::param: return is_parameter;
                             default:
                               return !is_in_shared_window(address) && !is_in_local_window(address) && !is_parameter;
                           }
                         },
                         warp.row<std::uint64_t>(operation.a)));
}

/// isspacep.const: nothing is there, but kernel parameters, which constant memory holds.
void translate_isspacep(Decoder& decoder, Operation& operation) {
  switch (decoder.take_one_of(
      {"global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "const"})) {
    case 0: operation.execute = &test_space<StateSpace::global>; break;
    case 1:  // .shared is .shared::cta
    case 2: operation.execute = &test_space<StateSpace::shared, true>; break;
    case 3: operation.execute = &test_space<StateSpace::shared>; break;
    case 4: operation.execute = &test_space<StateSpace::local>; break;
    case 5:
    case 6:
    case 7: operation.execute = &test_space<StateSpace::param>; break;
    default: decoder.reject("the state space is not known");
  }
  decoder.read_rows(operation, Type::pred, {Type::u64});
}

constexpr Opcode kOpcodes[] = {{"set", translate_set},
                               {"slct", translate_slct},
                               {"testp", translate_testp},
                               {"copysign", translate_copysign},
                               {"isspacep", translate_isspacep}};

}  // namespace

std::span<const Opcode> set_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
