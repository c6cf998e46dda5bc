// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/runtime/deadline.h"

namespace gradring {

/// How eagerly poll_until looks: `spins` times without a pause, then with naps between, each twice as long as the last.
struct PollPace {
  int spins = 200;
  std::chrono::nanoseconds first_nap = std::chrono::microseconds(1);
  std::chrono::nanoseconds longest_nap = std::chrono::microseconds(200);
};

/// Blocks the host until done() holds, by looking again and again.
///
/// Returns   false if the deadline passed first; done() was asked once more after that.
/// Errors    whatever done() throws.
template <class Done>
bool poll_until(const Done& done, Deadline deadline, PollPace pace = {}) {
  std::chrono::nanoseconds nap = pace.first_nap;
  for (int turn = 0;; ++turn) {
    const bool last = deadline.passed();
    if (done()) return true;
    if (last) return false;
    if (turn < pace.spins) continue;
    std::this_thread::sleep_for(std::min(nap, deadline.remaining()));
    nap = std::min(nap * 2, pace.longest_nap);
  }
}

}  // namespace gradring
