// SPDX-License-Identifier: Apache-2.0
// Block-wide and warp-wide barriers. `site` is the caller's place, for messages; kernels never pass it.
#pragma once

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
