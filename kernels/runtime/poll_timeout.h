// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "kernels/runtime/deadline.h"

namespace gradring {

/// What poll() is to be told so that it waits until the deadline: milliseconds, rounded up; without one, -1: as long as it takes.
inline int poll_timeout(const std::optional<Deadline>& deadline) noexcept {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline->remaining()).count();
  return static_cast<int>(std::min<decltype(left)>(left, 1 << 30));
}

}  // namespace gradring
