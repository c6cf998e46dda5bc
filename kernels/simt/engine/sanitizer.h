// SPDX-License-Identifier: Apache-2.0
// What AddressSanitizer and ThreadSanitizer must be told about emulated threads. Each function is empty in builds
// without them, so that the code that calls it needs no #if.
#pragma once

#include <cstddef>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
// GRADRING_SIMT_TSAN: set for the engine's own files, which are part of a TSan build without being instrumented
// themselves.
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer) || defined(GRADRING_SIMT_TSAN)
#define SIMT_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif
/// Checked builds (sanitizers, debug) trade speed for checks that cost at each access or each thread.
#if defined(SIMT_ASAN) || defined(SIMT_TSAN) || !defined(NDEBUG)
#define SIMT_CHECKED 1
#endif

namespace gradring::simt::detail {

#ifdef SIMT_TSAN
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#ifdef SIMT_ASAN
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#ifdef SIMT_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

/// What the sanitizers know one stack by.
struct Tracked {
  const void* stack = nullptr;
  std::size_t bytes = 0;
  void* fake_stack = nullptr;  // ASan's copy of the locals while the stack is parked
  void* thread = nullptr;      // TSan's identity: each emulated thread is a thread of its own to it
};

/// Happens-before edge for TSan: everything before release(object) is visible after a later acquire(object).
inline void release([[maybe_unused]] void* object) {
#ifdef SIMT_TSAN
  __tsan_release(object);
#endif
}
inline void acquire([[maybe_unused]] void* object) {
#ifdef SIMT_TSAN
  __tsan_acquire(object);
#endif
}

inline void create_identity([[maybe_unused]] Tracked& tracked) {
#ifdef SIMT_TSAN
  if (!tracked.thread) tracked.thread = __tsan_create_fiber(0);
#endif
}
inline void destroy_identity([[maybe_unused]] Tracked& tracked) {
#ifdef SIMT_TSAN
  if (tracked.thread) __tsan_destroy_fiber(tracked.thread);
  tracked.thread = nullptr;
#endif
}
/// Takes over the identity of the OS thread that runs now.
inline void adopt_identity([[maybe_unused]] Tracked& tracked) {
#ifdef SIMT_TSAN
  tracked.thread = __tsan_get_current_fiber();
#endif
}
/// Orders everything that the abandoned `from` did before what `to` does next.
inline void join_identity([[maybe_unused]] Tracked& from, [[maybe_unused]] Tracked& to) {
#ifdef SIMT_TSAN
  if (!from.thread) return;
  __tsan_switch_to_fiber(from.thread, __tsan_switch_to_fiber_no_sync);
  __tsan_switch_to_fiber(to.thread, 0);
#endif
}

/// To be called immediately before the stack changes ...
inline void before_switch([[maybe_unused]] Tracked& from, [[maybe_unused]] const Tracked& to) {
#ifdef SIMT_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.bytes);
#endif
#ifdef SIMT_TSAN
  __tsan_switch_to_fiber(to.thread, __tsan_switch_to_fiber_no_sync);
#endif
}
/// ... and immediately after, on the new stack; `left` learns the bounds of the stack that was left, if it has none
/// yet.
inline void after_switch([[maybe_unused]] Tracked& arrived, [[maybe_unused]] Tracked& left) {
#ifdef SIMT_ASAN
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(arrived.fake_stack, &stack, &bytes);
  if (!left.stack) {
    left.stack = stack;
    left.bytes = bytes;
  }
#endif
}
/// Makes a stack that was abandoned in the middle of a function usable again.
inline void unpoison([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef SIMT_ASAN
  __asan_unpoison_memory_region(memory, bytes);
#endif
}

}  // namespace gradring::simt::detail
