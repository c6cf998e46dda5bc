// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "kernels/runtime/device.h"
#include "nn/parameter/arena_layout.h"

namespace gradring::train {

/// One float of optimizer state for every element of the arena, zero at the start.
inline kernels::Buffer make_state_arena(kernels::Device& device, const nn::ArenaLayout& layout) {
  kernels::Buffer state = device.allocate(layout.elements() * sizeof(float));
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  stream->enqueue_zero(state.data(), state.size());
  stream->synchronize(Deadline::after(std::chrono::minutes(1)));
  return state;
}

}  // namespace gradring::train
