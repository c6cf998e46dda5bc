// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gradring::comm {

/// Sleeps while `word` holds `expected`, at most for `longest`; may return early for no reason. The word may lie in
/// memory that processes share, which std::atomic::wait does not support.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::chrono::nanoseconds longest);

/// Wakes everybody who sleeps on `word`.
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace gradring::comm
