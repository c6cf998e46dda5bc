// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include "kernels/runtime/device.h"

namespace gradring::train {

/// One float of optimizer state for every weight, zero at the start.
inline kernels::Buffer make_state_arena(kernels::Device& device, std::size_t elements) {
  kernels::Buffer state = device.allocate(elements * sizeof(float));
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  stream->enqueue_zero(state.data(), state.size());
  stream->synchronize(Deadline::after(std::chrono::minutes(1)));
  return state;
}

}  // namespace gradring::train
