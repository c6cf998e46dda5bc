// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/event.h"

#include "kernels/runtime/error.h"
#include "kernels/runtime/poll_until.h"

namespace gradring::kernels {

void wait(const Event& event, Deadline deadline) {
  check<DeviceError>(poll_until([&] { return event.reached(); }, deadline),
                     "an event was not reached before its deadline: the stream that recorded it hangs or is too slow");
}

}  // namespace gradring::kernels
