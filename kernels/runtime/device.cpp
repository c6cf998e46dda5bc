// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/device.h"

#include <charconv>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels {

DeviceId DeviceId::parse(std::string_view text) {
  if (text == "cpu") return {DeviceKind::cpu, 0};
  if (text == "cuda") return {DeviceKind::cuda, 0};
  constexpr std::string_view kPrefix = "cuda:";
  if (text.starts_with(kPrefix)) {
    const std::string_view number = text.substr(kPrefix.size());
    int index = 0;
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (failed == std::errc() && end == number.data() + number.size() && index >= 0) return {DeviceKind::cuda, index};
  }
  throw InvalidArgument("unknown device '" + std::string(text) + "': expected cpu, cuda or cuda:INDEX");
}

std::string DeviceId::to_string() const { return kind == DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(index); }

void wait(const Event& event, Deadline deadline) {
  check<DeviceError>(poll_until([&] { return event.reached(); }, deadline),
                     "an event was not reached before its deadline: the stream that recorded it hangs or is too slow");
}

}  // namespace gradring::kernels
