// SPDX-License-Identifier: Apache-2.0
// Loads and stores with cache hints, which a CPU does not need, and memory fences.
#pragma once

#include <atomic>

#include "kernels/simt/engine/sanitizer.h"

// clang-format off
template <class T> T __ldg(const T* address) { return *address; }
template <class T> T __ldca(const T* address) { return *address; }
template <class T> T __ldcg(const T* address) { return *address; }
template <class T> T __ldcs(const T* address) { return *address; }
template <class T> void __stcg(T* address, T value) { *address = value; }
template <class T> void __stcs(T* address, T value) { *address = value; }
template <class T> void __stwb(T* address, T value) { *address = value; }
// clang-format on

namespace gradring::simt::detail {

/// ThreadSanitizer does not know fences. One object that every fence acquires and releases stands for them all: it sees
/// fewer races than there are, never more.
inline char fence_edge = 0;

inline void fence() {
  if constexpr (kThreadSanitizer) {
    acquire(&fence_edge);
    release(&fence_edge);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
#ifndef SIMT_TSAN
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
}

}  // namespace gradring::simt::detail

inline void __threadfence_block() { gradring::simt::detail::fence(); }
inline void __threadfence() { gradring::simt::detail::fence(); }
inline void __threadfence_system() { gradring::simt::detail::fence(); }
