// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "nn/parameter/arena_layout.h"

namespace gradring::nn {

/// A layout and the memory behind it: `data` holds layout.elements() floats on the device. Owns neither: whoever
/// allocated the memory (a device, or a transport, so that peers can reach gradients in place) keeps it alive.
struct Arena {
  const ArenaLayout& layout;
  float* data = nullptr;

  float* parameter(int index) const { return data + layout.parameter(index).offset; }
  std::span<float> bucket(int index) const {
    return {data + layout.bucket(index).offset, layout.bucket(index).elements};
  }
  std::span<float> riders() const { return {data + layout.riders().offset, layout.riders().elements}; }
};

}  // namespace gradring::nn
