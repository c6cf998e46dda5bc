// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/dtype.h"
#include "nn/parameter/arena.h"

namespace gradring::nn {

/// All weights as plans read them, in the type that the program computes in: an f32 arena itself, or a rounded copy of
/// one. Owns nothing.
struct Weights {
  const ArenaLayout& layout;
  kernels::DType dtype = kernels::DType::f32;
  const std::byte* data = nullptr;

  const void* parameter(int index) const { return data + layout.parameter(index).offset * kernels::size_of(dtype); }
};

/// The weights of an f32 arena, read in place.
inline Weights weights_in(const Arena& arena) {
  return {.layout = arena.layout, .dtype = kernels::DType::f32, .data = reinterpret_cast<const std::byte*>(arena.data)};
}

}  // namespace gradring::nn
