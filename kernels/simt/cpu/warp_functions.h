// SPDX-License-Identifier: Apache-2.0
// Barriers; shuffles, votes, matches and reductions within a warp. `site` is the caller's source location, for messages;
// kernels do not pass it.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/cooperation.h"

inline void __syncthreads(gradring::simt::Site site = gradring::simt::Site::current()) {
  gradring::simt::detail::block_barrier("__syncthreads", false, site);
}
inline int __syncthreads_count(int predicate, gradring::simt::Site site = gradring::simt::Site::current()) {
  return static_cast<int>(gradring::simt::detail::block_barrier("__syncthreads_count", predicate != 0, site));
}
inline int __syncthreads_and(int predicate, gradring::simt::Site site = gradring::simt::Site::current()) {
  return gradring::simt::detail::block_barrier("__syncthreads_and", predicate == 0, site) == 0;
}
inline int __syncthreads_or(int predicate, gradring::simt::Site site = gradring::simt::Site::current()) {
  return gradring::simt::detail::block_barrier("__syncthreads_or", predicate != 0, site) != 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, gradring::simt::Site site = gradring::simt::Site::current()) {
  gradring::simt::detail::warp_barrier("__syncwarp", mask, site);
}

namespace gradring::simt::detail {

inline int lane_id() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

/// Any value of at most eight bytes travels as a word.
template <class T>
T shuffle(const char* what, unsigned mask, T value, int source, Site site) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a shuffle moves at most 8 bytes a lane");
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = warp_shuffle(what, mask, word, static_cast<unsigned>(source), site);
  std::memcpy(&value, &word, sizeof value);
  return value;
}

template <class T>
std::uint64_t word_of(T value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

}  // namespace gradring::simt::detail

#define SIMT_SITE gradring::simt::Site site = gradring::simt::Site::current()

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_SITE) {
  const int lane = gradring::simt::detail::lane_id();
  return gradring::simt::detail::shuffle("__shfl_sync", mask, value, (lane & ~(width - 1)) | (source & (width - 1)),
                                         site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, SIMT_SITE) {
  const int lane = gradring::simt::detail::lane_id();
  const int source = lane ^ lane_mask;
  return gradring::simt::detail::shuffle("__shfl_xor_sync", mask, value, source / width > lane / width ? lane : source,
                                         site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
  const int lane = gradring::simt::detail::lane_id();
  const int source = lane + static_cast<int>(delta);
  return gradring::simt::detail::shuffle("__shfl_down_sync", mask, value,
                                         source / width == lane / width ? source : lane, site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
  const int lane = gradring::simt::detail::lane_id();
  const int source = lane - static_cast<int>(delta);
  return gradring::simt::detail::shuffle("__shfl_up_sync", mask, value, source >= (lane & ~(width - 1)) ? source : lane,
                                         site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
  return gradring::simt::detail::warp_ballot("__ballot_sync", mask, predicate != 0, site);
}
inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
  return gradring::simt::detail::warp_ballot("__any_sync", mask, predicate != 0, site) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
  return gradring::simt::detail::warp_ballot("__all_sync", mask, predicate == 0, site) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, SIMT_SITE) {
  return gradring::simt::detail::warp_match("__match_any_sync", mask, gradring::simt::detail::word_of(value), site);
}

#define SIMT_REDUCE(name, T, how)                                                                             \
  inline T name(unsigned mask, T value, SIMT_SITE) {                                                          \
    return static_cast<T>(gradring::simt::detail::warp_reduce(#name, mask, static_cast<unsigned>(value),      \
                                                              gradring::simt::detail::Reduction::how, site)); \
  }
SIMT_REDUCE(__reduce_add_sync, unsigned, add)
SIMT_REDUCE(__reduce_add_sync, int, add)
SIMT_REDUCE(__reduce_min_sync, unsigned, minimum)
SIMT_REDUCE(__reduce_min_sync, int, minimum_signed)
SIMT_REDUCE(__reduce_max_sync, unsigned, maximum)
SIMT_REDUCE(__reduce_max_sync, int, maximum_signed)
SIMT_REDUCE(__reduce_and_sync, unsigned, bit_and)
SIMT_REDUCE(__reduce_or_sync, unsigned, bit_or)
SIMT_REDUCE(__reduce_xor_sync, unsigned, bit_xor)
#undef SIMT_REDUCE
#undef SIMT_SITE
