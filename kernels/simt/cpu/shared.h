// SPDX-License-Identifier: Apache-2.0
// Shared memory. A worker runs one block at a time, so one copy for each OS thread is one copy for each block.
#pragma once

#include <type_traits>

#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/sanitizer.h"
#include "kernels/simt/engine/shared_memory.h"

/// CUDA's own spelling works, but has no redzones: SIMT_SHARED has, in ASan builds.
#define __shared__ static thread_local

namespace gradring::simt::detail {

template <class Type>
Type& new_shared_variable() {
  return *static_cast<Type*>(own_shared_variable(sizeof(Type)));
}

/// Room for a variable that nobody initialises. A plain variable of a class with constructors (__half) would get a
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
