// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/simt/executor_options.h"

namespace gradring::simt::detail {

struct Fiber;

/// Who runs next in a block: threads that have not started yet, in the chosen order, and threads that a barrier has made
/// ready again. ThreadOrder::random draws between them, always alike for equal seeds.
class Turns {
 public:
  static constexpr unsigned kMaxThreads = 1024;

  void begin(ThreadOrder order, std::uint64_t seed, unsigned threads);

  bool all_started() const { return started_ == threads_; }
  bool any_ready() const { return ready_count_ != 0; }
  /// Linear index of the next thread to start.
  unsigned start_next() { return start_order_[started_++]; }
  /// True if a ready thread, not a new one, should run now.
  bool prefer_ready();

  void push_ready(Fiber* fiber);
  Fiber* pop_ready();

 private:
  unsigned draw(unsigned below);

  std::array<unsigned, kMaxThreads> start_order_;
  std::array<Fiber*, kMaxThreads> ready_;  // ring
  unsigned threads_ = 0, started_ = 0, ready_count_ = 0, ready_first_ = 0;
  bool random_ = false;
  std::uint64_t state_ = 1;  // xorshift64
};

}  // namespace gradring::simt::detail
