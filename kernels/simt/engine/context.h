// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gradring::simt::detail {

/// A parked stack: where to resume it. One header, three bodies, of which CMake picks one: context_x86_64.cpp and
/// context_aarch64.cpp (twenty instructions, no system call), context_ucontext.cpp (any POSIX system; the kernel is
/// asked for the signal mask at each switch, which costs twenty times as much).
struct Context {
  void* resume = nullptr;
};

/// Lays out `stack` so that the first switch to the result calls `entry`, which must never return.
Context make_context(char* stack, std::size_t bytes, void (*entry)());

/// Parks the running stack in `from` and resumes `to`. Returns when another switch resumes `from`.
void switch_context(Context& from, const Context& to);

}  // namespace gradring::simt::detail
