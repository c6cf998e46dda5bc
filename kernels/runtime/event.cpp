// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/event.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/runtime/error.h"

namespace gradring::kernels {

void wait(const Event& event, Deadline deadline) {
  constexpr int kSpins = 200;
  constexpr std::chrono::microseconds kLongestNap(200);
  std::chrono::microseconds nap(1);
  for (int turn = 0; !event.reached(); ++turn) {
    if (deadline.passed())
      throw DeviceError("an event was not reached before its deadline: the stream that recorded it hangs or is too slow");
    if (turn < kSpins) continue;
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, kLongestNap);
  }
}

}  // namespace gradring::kernels
