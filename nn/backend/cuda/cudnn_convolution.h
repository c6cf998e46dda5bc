// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "nn/backend/cuda/cudnn_descriptor.h"

namespace gradring::nn {

/// What is asked of cuDNN in one graph.
enum class ConvPass : std::uint8_t {
  forward,            ///< y = conv(x, w)
  forward_bias_relu,  ///< y = max(conv(x, w) + b, 0), only the result is stored
  dgrad,              ///< dx from dy, w
  wgrad,              ///< dw from x, dy
};

/// One convolution with all that cuDNN chooses an engine by. Sums are in f32.
struct ConvProblem {
  ConvPass pass = ConvPass::forward;
  kernels::conv2d::Geometry geometry;
  kernels::DType dtype = kernels::DType::f32;     ///< of x, w, b, y and their gradients
  kernels::DType dw_dtype = kernels::DType::f32;  ///< of dw, in wgrad

  /// "wgrad f16 dw f32 x 64 28 28 1 w 32 3 3 stride 1 padding 0": equal for equal problems, and the key of what was measured.
  std::string key() const;
};

/// By these numbers pointers are handed to a graph: x or dx, w or dw, y or dy, b.
enum ConvTensor : std::int64_t { kTensorX = 1, kTensorW, kTensorY, kTensorB };

/// Of pointers that are handed over, in bytes; arenas and buffers keep more.
inline constexpr std::int64_t kCudnnAlignment = 16;

/// The operations of a problem in a finished graph. NHWC and OHWI memory in cuDNN's order of extents: N C H W, O I H W.
/// Without a handle the graph is of no device and nothing can be chosen for it; cuDNN still checks it.
///
/// Errors    CudnnError if cuDNN knows no such convolution.
CudnnDescriptor make_graph(const CudnnApi& api, cudnnHandle_t handle, const ConvProblem& problem);

}  // namespace gradring::nn
