// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/host/host_stream.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_event.h"

namespace gradring::kernels {
namespace {

/// A stream that waits longer than this for another stream's event waits for work that will never come.
constexpr std::chrono::minutes kLongestEventWait(10);

void wait_for_record(const HostEvent& event, std::uint64_t record) {
  constexpr int kSpins = 200;
  constexpr std::chrono::microseconds kLongestNap(100);
  const Deadline deadline = Deadline::after(kLongestEventWait);
  std::chrono::microseconds nap(1);
  for (int turn = 0; !event.reached(record); ++turn) {
    check<DeviceError>(!deadline.passed(), "a stream waited 10 minutes for an event that was never reached");
    if (turn < kSpins) continue;
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, kLongestNap);
  }
}

}  // namespace

void HostStream::enqueue_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([to, from, bytes] { std::memcpy(to, from, bytes); });
}

void HostStream::enqueue_zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([to, bytes] { std::memset(to, 0, bytes); });
}

void HostStream::enqueue_wait(const Event& event) {
  const auto& mark = static_cast<const HostEvent&>(event);
  const std::uint64_t record = mark.last_record();
  enqueue([&mark, record] { wait_for_record(mark, record); });
}

}  // namespace gradring::kernels
