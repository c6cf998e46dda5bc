// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "nn/parameter/arena.h"

namespace gradring::nn {

/// Where a backward pass leaves gradients: every bucket of the layout in a place of its own, and the riders in another. Owns
/// nothing.
struct Gradients {
  const ArenaLayout& layout;
  std::vector<float*> buckets;  ///< where each begins
  float* riders = nullptr;

  float* parameter(int index) const {
    const int bucket = layout.bucket_of(index);
    return buckets.at(static_cast<std::size_t>(bucket)) +
           (layout.parameter(index).offset - layout.bucket(bucket).offset);
  }
};

/// The gradients of an arena, riders and all.
inline Gradients gradients_in(const Arena& arena) {
  Gradients gradients{.layout = arena.layout, .buckets = {}, .riders = arena.riders().data()};
  for (int bucket = 0; bucket < arena.layout.buckets(); ++bucket)
    gradients.buckets.push_back(arena.bucket(bucket).data());
  return gradients;
}

}  // namespace gradring::nn
