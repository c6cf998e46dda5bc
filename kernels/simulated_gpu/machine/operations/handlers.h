// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/machine/warp.h"
#include "kernels/simulated_gpu/ptx/module.h"
#include "kernels/simulated_gpu/units/half.h"

namespace gradring::simulated_gpu {

// Handlers of functors: d = F(a), F(a, b), F(a, b, c), lane by lane, with the types of the rows.

template <class F, class D, class A>
void unary(const Operation& operation, Warp& warp, Mask active) {
  map_lanes(active, F{}, warp.row<D>(operation.d), warp.row<A>(operation.a));
}

template <class F, class D, class A, class B>
void binary(const Operation& operation, Warp& warp, Mask active) {
  map_lanes(active, F{}, warp.row<D>(operation.d), warp.row<A>(operation.a), warp.row<B>(operation.b));
}

template <class F, class D, class A, class B, class C>
void ternary(const Operation& operation, Warp& warp, Mask active) {
  map_lanes(active, F{}, warp.row<D>(operation.d), warp.row<A>(operation.a), warp.row<B>(operation.b),
            warp.row<C>(operation.c));
}

/// min and max of integers, whose order is that of T.
struct IntegerMinimum {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};

struct IntegerMaximum {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};

/// Reads operands that all have one type, which was taken already: "d, a", "d, a, b" or "d, a, b, c".
template <unsigned kSources>
void read_rows(Decoder& decoder, Operation& operation, ptx::Type type) {
  if constexpr (kSources == 1) decoder.read_rows(operation, type, {type});
  if constexpr (kSources == 2) decoder.read_rows(operation, type, {type, type});
  if constexpr (kSources == 3) decoder.read_rows(operation, type, {type, type, type});
}

/// Takes the type as well, and returns it.
template <unsigned kSources>
ptx::Type take_type_and_rows(Decoder& decoder, Operation& operation) {
  const ptx::Type type = decoder.take_type();
  read_rows<kSources>(decoder, operation, type);
  return type;
}

/// The type of A and B: f16 or bf16, twice.
inline Half take_half_types(Decoder& decoder) {
  const ptx::Type type = decoder.take_type();
  if (decoder.take_type() != type || (type != ptx::Type::f16 && type != ptx::Type::bf16))
    decoder.reject("A and B of f16 or of bf16 are expected");
  return type == ptx::Type::f16 ? Half::f16 : Half::bf16;
}

/// A word of an instruction, and what it stands for.
template <class T>
struct Word {
  std::string_view word;
  T meaning;
};

/// Takes a word of the table; null if the instruction has none of them.
template <class T, std::size_t kRows>
T take_from(Decoder& decoder, const Word<T> (&table)[kRows]) {
  for (const Word<T>& row : table)
    if (decoder.take(row.word)) return row.meaning;
  return nullptr;
}

/// Calls f(group, members) for the lanes of `active` that have the same member mask, in row `mask`.
///
/// Errors    Fault if a lane is no member of its own mask.
template <class F>
void for_each_mask(const Operation& operation, Warp& warp, Mask active, Slot mask, const F& f) {
  for (Mask rest = active; rest != 0;) {
    const Mask* const row = warp.row<Mask>(mask);
    const Mask members = row[lowest_lane(rest)];
    const Mask group = rest & lanes_where([&](Mask other) { return other == members; }, row);
    rest &= ~group;
    if ((group & ~members) != 0)
      warp.fail(operation, lowest_lane(group & ~members), "a thread is not in the member mask of its own instruction");
    f(group, members);
  }
}

/// For instructions with a member mask, in row `mask`: lanes of `active` with the same mask are a group, which executes
/// the instruction on its own as soon as all members that live are here: f(group). Groups that are not complete wait
/// for their other members, and execute the instruction again with them.
///
/// Source    PTX ISA, shfl.sync, vote.sync, ...: an executing thread waits until all non-exited threads of
///           membermask have executed it with the same membermask.
/// Errors    as for_each_mask.
template <class F>
void for_each_group(const Operation& operation, Warp& warp, Mask active, Slot mask, const F& f) {
  Mask waiting = 0;
  Mask awaited = 0;
  for_each_mask(operation, warp, active, mask, [&](Mask group, Mask members) {
    if ((members & warp.living() & ~group) == 0) return f(group);
    waiting |= group;
    awaited |= members;
  });
  if (waiting != 0) warp.wait_for_lanes(waiting, active, awaited);
}

/// For instructions that the whole warp executes, as .sync.aligned demands: whether all lanes are here. If not, those
/// of `active` wait for the others, and execute it again with them.
///
/// Errors    Fault if threads of the warp have ended or never were.
inline bool is_whole_warp(const Operation& operation, Warp& warp, Mask active) {
  if (active != kAllLanes && warp.living() != kAllLanes)
    warp.fail(operation, lowest_lane(active),
              "an instruction for whole warps is executed by a warp of which threads are missing");
  return warp.are_together(active, kAllLanes);
}

/// Whether values of a type of PTX are computed as T. Bits without a meaning are unsigned.
template <class T>
constexpr bool computes(ptx::Type type) {
  using enum ptx::Type;
  if constexpr (std::same_as<T, std::uint8_t>) return type == u8 || type == b8;
  if constexpr (std::same_as<T, std::int8_t>) return type == s8;
  if constexpr (std::same_as<T, std::uint16_t>) return type == u16 || type == b16;
  if constexpr (std::same_as<T, std::int16_t>) return type == s16;
  if constexpr (std::same_as<T, std::uint32_t>) return type == u32 || type == b32;
  if constexpr (std::same_as<T, std::int32_t>) return type == s32;
  if constexpr (std::same_as<T, std::uint64_t>) return type == u64 || type == b64;
  if constexpr (std::same_as<T, std::int64_t>) return type == s64;
  if constexpr (std::same_as<T, float>) return type == f32;
  if constexpr (std::same_as<T, double>) return type == f64;
  return false;
}

constexpr bool is_signed(ptx::Type type) {
  using enum ptx::Type;
  return type == s8 || type == s16 || type == s32 || type == s64;
}

/// The type without a sign and without a meaning: s32 and f32 are b32.
constexpr ptx::Type bits_of(ptx::Type type) {
  using enum ptx::Type;
  switch (type) {
    case s8:
    case u8: return b8;
    case s16:
    case u16:
    case f16:
    case bf16: return b16;
    case s32:
    case u32:
    case f32: return b32;
    case s64:
    case u64:
    case f64: return b64;
    default: return type;
  }
}

/// What choose.operator()<T>() returns for the one of Types that computes `type`.
///
/// Errors    Unsupported if none of them does.
/// Example   choose_type<std::uint32_t, std::uint64_t>(decoder, type, []<class T> { return &unary<Not, T, T>; })
template <class... Types, class Choose>
auto choose_type(Decoder& decoder, ptx::Type type, Choose choose) {
  using Result = std::common_type_t<decltype(choose.template operator()<Types>())...>;
  Result result{};
  const bool found = ((computes<Types>(type) && (result = choose.template operator()<Types>(), true)) || ...);
  if (!found) decoder.reject(joined("type ", ptx::name_of(type), " is not supported here"));
  return result;
}

/// The same for integers of 16 to 64 bits.
template <class Choose>
auto choose_integer(Decoder& decoder, ptx::Type type, Choose choose) {
  return choose_type<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>(
      decoder, type, choose);
}

/// The same, with those of 8 bits.
template <class Choose>
auto choose_integer_or_byte(Decoder& decoder, ptx::Type type, Choose choose) {
  return choose_type<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, std::uint64_t,
                     std::int64_t>(decoder, type, choose);
}

/// The same for registers: by width alone.
template <class Choose>
auto choose_bits(Decoder& decoder, ptx::Type type, Choose choose) {
  return choose_type<std::uint16_t, std::uint32_t, std::uint64_t>(decoder, bits_of(type), choose);
}

/// What choose.operator()<R>() returns for a register of `width` bytes that holds a T.
template <class T, class Choose>
Handler choose_register(Decoder& decoder, unsigned width, Choose choose) {
  if constexpr (sizeof(T) <= 2)
    if (width == 2) return choose.template operator()<std::uint16_t>();
  if constexpr (sizeof(T) <= 4)
    if (width == 4) return choose.template operator()<std::uint32_t>();
  if (width == 8) return choose.template operator()<std::uint64_t>();
  decoder.reject("the register is too narrow");
}

}  // namespace gradring::simulated_gpu
