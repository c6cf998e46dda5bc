// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/runtime/dtype.h"
#include "nn/parameter/arena.h"

namespace gradring::nn {

/// All weights as plans read them, in the type that the program computes in: an f32 arena itself, or a rounded copy of
/// one, or buckets that lie apart. Owns nothing.
struct Weights {
  const ArenaLayout& layout;
  kernels::DType dtype = kernels::DType::f32;
  std::vector<const std::byte*> buckets;  ///< where each begins

  const void* parameter(int index) const {
    const int bucket = layout.bucket_of(index);
    const std::size_t behind = layout.parameter(index).offset - layout.bucket(bucket).offset;
    return buckets.at(static_cast<std::size_t>(bucket)) + behind * kernels::size_of(dtype);
  }
};

/// Weights that lie as an arena does, from `data` on.
inline Weights weights_at(const ArenaLayout& layout, kernels::DType dtype, const void* data) {
  Weights weights{.layout = layout, .dtype = dtype, .buckets = {}};
  for (int bucket = 0; bucket < layout.buckets(); ++bucket)
    weights.buckets.push_back(static_cast<const std::byte*>(data) +
                              layout.bucket(bucket).offset * kernels::size_of(dtype));
  return weights;
}

/// The weights of an f32 arena, read in place.
inline Weights weights_in(const Arena& arena) { return weights_at(arena.layout, kernels::DType::f32, arena.data); }

}  // namespace gradring::nn
