// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace gradring::simulated_gpu {

inline constexpr unsigned kWarpSize = 32;

/// A bit for each lane of a warp.
using Mask = std::uint32_t;
inline constexpr Mask kAllLanes = ~Mask{0};

/// The bit of each lane: loops that compare with a row of bits become vector code on every processor, those that
/// shift by the lane do not.
inline constexpr std::array<Mask, kWarpSize> kLaneBits = [] {
  std::array<Mask, kWarpSize> bits{};
  for (unsigned lane = 0; lane < kWarpSize; ++lane) bits[lane] = Mask{1} << lane;
  return bits;
}();

constexpr unsigned lowest_lane(Mask mask) { return static_cast<unsigned>(std::countr_zero(mask)); }

/// Calls f(lane) for each lane of `mask`, the lowest first.
template <class F>
void for_each_lane(Mask mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(lowest_lane(mask));
}

/// The same in any order; a full mask is a plain loop, which is vectorised.
template <class F>
void for_lanes(Mask mask, F&& f) {
  if (mask == kAllLanes)
    for (unsigned lane = 0; lane < kWarpSize; ++lane) f(lane);
  else
    for_each_lane(mask, f);
}

/// d[lane] = f(sources[lane]...) for the lanes of `mask`. `f` is defined for every value: it is called for all lanes.
///
/// Aliasing  d may be one of the sources; rows do not overlap otherwise.
template <class F, class D, class... S>
void map_lanes(Mask mask, F f, D* d, const S*... sources) {
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kWarpSize; ++lane) d[lane] = f(sources[lane]...);
    return;
  }
  alignas(64) D results[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) results[lane] = f(sources[lane]...);
#pragma GCC ivdep
  for (unsigned lane = 0; lane < kWarpSize; ++lane) d[lane] = (mask & kLaneBits[lane]) != 0 ? results[lane] : d[lane];
}

/// The lanes for which f(sources[lane]...) holds. `f` is called for all lanes.
template <class F, class... S>
Mask lanes_where(F f, const S*... sources) {
  Mask found = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) found |= f(sources[lane]...) ? kLaneBits[lane] : 0;
  return found;
}

}  // namespace gradring::simulated_gpu
