// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// What forward makes of its sums: plus the bias of their filter, if there is one; with `relu`, at least 0.
template <class T>
struct Epilogue {
  const T* bias = nullptr;
  bool relu = false;

  Epilogue() = default;
  explicit Epilogue(const ForwardArgs& args) : bias(static_cast<const T*>(args.bias)), relu(args.relu) {}

  __device__ float finished(float sum, std::int64_t filter) const {
    return clamped(bias ? sum + lib::to_f32(bias[filter]) : sum);
  }
  __device__ float clamped(float sum) const { return relu && sum < 0.0f ? 0.0f : sum; }  // NaN stays NaN
};

/// Of the other passes.
struct NoEpilogue {
  static constexpr bool relu = false;

  __device__ float finished(float sum, std::int64_t) const { return sum; }
  __device__ float clamped(float sum) const { return sum; }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
