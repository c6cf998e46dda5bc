// SPDX-License-Identifier: Apache-2.0
// Fences, shared memory, wide accesses and asynchronous copies (kernels/lib/async_copy.h) on the CPU. A worker runs one
// block at a time, so one copy of a shared variable for each OS thread is one for each block. Asynchronous copies are
// instrumented code: TSan must see them as the thread's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/cooperation.h"
#include "kernels/simt/engine/sanitizer.h"
#include "kernels/simt/engine/shared_memory.h"

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

inline void __threadfence() { gradring::simt::detail::fence(); }

/// CUDA's own spelling works, but has no redzones: SIMT_SHARED has, in ASan builds.
#define __shared__ static thread_local

namespace gradring::simt::detail {

template <class Type>
Type& new_shared_variable() {
  return *static_cast<Type*>(own_shared_variable(sizeof(Type)));
}

/// Storage for a variable without initialisation. A plain variable of a class with constructors (__half) would get a
/// guard from the compiler, which all threads of a block look at and the first one sets: a race to TSan that the kernel
/// does not have.
template <class Type>
union SharedStorage {
  constexpr SharedStorage() : nothing() {}
  unsigned char nothing;
  Type variable;
};

template <class Type>
inline constexpr bool fits_static_shared = sizeof(Type) <= kMostStaticSharedBytes;

template <class Wide>
void check_aligned([[maybe_unused]] const void* address, [[maybe_unused]] Site site) {
  if constexpr (kChecked)
    if (reinterpret_cast<std::uintptr_t>(address) % alignof(Wide) != 0) fail_kernel(site, "misaligned wide access");
}

}  // namespace gradring::simt::detail

// Type comes in parentheses-free form with its extents, float[8][33]; commas in it need an alias.
#if defined(SIMT_CHECKED) && !defined(SIMT_TSAN)
#define SIMT_SHARED(Type, name)                                                       \
  static_assert(gradring::simt::detail::fits_static_shared<Type>, "more than 48 KB"); \
  static thread_local std::type_identity_t<Type>& name =                              \
      gradring::simt::detail::new_shared_variable<std::type_identity_t<Type>>()
#else
#define SIMT_SHARED(Type, name)                                                       \
  static_assert(gradring::simt::detail::fits_static_shared<Type>, "more than 48 KB"); \
  static constinit thread_local __attribute__((aligned(128)))                         \
  gradring::simt::detail::SharedStorage<std::type_identity_t<Type>>                   \
      name##_storage;                                                                 \
  auto& name = name##_storage.variable
#endif

/// `extern __shared__ Type name[]` cannot be a macro's expansion on the CPU.
#define SIMT_DYNAMIC_SHARED(Type, name) \
  Type* const name = reinterpret_cast<Type*>(gradring::simt::detail::dynamic_shared)

namespace gradring::simt {

template <class Wide, class T>
Wide load_as(const T* address, Site site = Site::current()) {
  detail::check_aligned<Wide>(address, site);
  Wide value;
  std::memcpy(&value, __builtin_assume_aligned(address, alignof(Wide)), sizeof value);
  return value;
}

template <class Wide, class T>
void store_as(T* address, const Wide& value, Site site = Site::current()) {
  detail::check_aligned<Wide>(address, site);
  std::memcpy(__builtin_assume_aligned(address, alignof(Wide)), &value, sizeof value);
}

}  // namespace gradring::simt

namespace gradring::simt::detail {

/// Without `global`, the bytes become 0.
template <int kBytes>
void start_async_copy(void* shared, const void* global, Site site = Site::current()) {
  using Wide = std::conditional_t<kBytes == 16, uint4, std::uint32_t>;
  check_aligned<Wide>(shared, site);
  check_aligned<Wide>(global, site);
  async_work_of_thread("async_copy", site).copies.start({shared, global, kBytes});
}

template <class Wide>
void land_async_copy(const AsyncCopy& copy) {
  store_as<Wide>(static_cast<char*>(copy.to), copy.from ? load_as<Wide>(static_cast<const char*>(copy.from)) : Wide{});
}

inline void commit_async_copies(Site site = Site::current()) {
  async_work_of_thread("async_commit", site).copies.commit();
}

inline void wait_for_async_copies(unsigned pending, Site site = Site::current()) {
  async_work_of_thread("async_wait", site).copies.land_all_but(pending, [](const AsyncCopy& copy) {
    copy.bytes == 16 ? land_async_copy<uint4>(copy) : land_async_copy<std::uint32_t>(copy);
  });
}

}  // namespace gradring::simt::detail
