// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/host/host_stream.h"

#include <cstring>

#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_event.h"

namespace gradring::kernels {
namespace {

/// A stream that waits longer than this for another stream's event waits for work that will never come.
constexpr std::chrono::minutes kLongestEventWait(10);

void wait_for_record(const HostEvent& event, std::uint64_t record) {
  check<DeviceError>(event.wait(record, Deadline::after(kLongestEventWait)),
                     "a stream waited 10 minutes for an event that was never reached");
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
