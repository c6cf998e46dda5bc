// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/warp.h"

namespace gradring::simulated_gpu {

/// What atom and red make of the value in memory and an operand of its type.
///
/// Source    PTX ISA 9.0: 9.7.13.5 atom, 9.7.13.7 red.
namespace atomics {

using Add = decltype([](auto old, auto b) { return old + b; });
using And = decltype([](auto old, auto b) { return old & b; });
using Or = decltype([](auto old, auto b) { return old | b; });
using Xor = decltype([](auto old, auto b) { return old ^ b; });
using Exchange = decltype([](auto, auto b) { return b; });
/// Of a number and a NaN, the number.
using Minimum = decltype([](auto old, auto b) { return b < old || old != old ? b : old; });
using Maximum = decltype([](auto old, auto b) { return b > old || old != old ? b : old; });
/// Wraps to 0 behind b.
using Increment = decltype([](auto old, auto b) { return old >= b ? 0 : old + 1; });
/// Wraps to b behind 0.
using Decrement = decltype([](auto old, auto b) { return old == 0 || old > b ? b : old - 1; });

}  // namespace atomics

/// Whether two values have the same bits: a NaN is what it was.
template <class T>
bool are_same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// After an atomic of some lanes, the first at `address`. `is_new`: it returned something else than the last time.
inline void note_atomic(const Operation& operation, Warp& warp, std::uint64_t address, bool changes, bool is_new) {
  if (changes) {
    warp.block().note_change();
    warp.end_fair_turn();
  }
  warp.note_poll(operation, address, changes || is_new);
}

}  // namespace gradring::simulated_gpu
