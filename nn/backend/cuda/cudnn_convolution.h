// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops/conv2d/conv2d.h"
#include "nn/backend/cuda/cudnn_api.h"

namespace gradring::nn {

/// What one graph computes.
enum class ConvPass : std::uint8_t {
  forward,       ///< y = conv(x, w)
  forward_bias,  ///< y = conv(x, w) + b, rounded once
  dgrad,         ///< dx from dy, w
  wgrad,         ///< dw from x, dy
};

/// A convolution pass with everything that cuDNN's choice of an engine depends on. Sums are in f32.
struct ConvProblem {
  ConvPass pass = ConvPass::forward;
  kernels::conv2d::Geometry geometry;
  kernels::DType dtype = kernels::DType::f32;     ///< of x, w, b, y and their gradients
  kernels::DType dw_dtype = kernels::DType::f32;  ///< of dw, in wgrad

  /// "wgrad f16 dw f32 x 64 28 28 1 w 32 3 3 stride 1 padding 0": equal for equal problems; the key in the plan cache.
  std::string key() const;
};

/// Tensor ids in a graph: x or dx, w or dw, y or dy, b.
enum ConvTensor : std::int64_t { kTensorX = 1, kTensorW, kTensorY, kTensorB };

/// The tensors of a pass's graph: executing it takes exactly these.
std::vector<ConvTensor> tensors_of(ConvPass pass);

/// Guaranteed alignment of pointers in bytes; arenas and buffers have more.
inline constexpr std::int64_t kCudnnAlignment = 16;

/// A finalized graph of a problem: memory in NHWC and OHWI, extents in cuDNN's order NCHW and OIHW. Without a handle
/// cuDNN checks the graph, but engines cannot be chosen for it.
///
/// Errors    CudnnError if cuDNN does not support the convolution.
CudnnDescriptor make_graph(const CudnnApi& api, cudnnHandle_t handle, const ConvProblem& problem);

}  // namespace gradring::nn
