// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"
#include "kernels/ops/max_pool2d/max_pool2d.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"

namespace gradring::nn::bench {

/// The convolution and ReLU of a conv_relu_pool, for a library to plan.
std::vector<NodeSpec> conv_relu_nodes(const kernels::conv_relu_pool::Geometry& geometry, kernels::DType dtype);

/// conv_relu_pool in two steps, for benchmarks: convolution and ReLU by a library's plan, pooling by our kernel.
/// Fulfils the contract of kernels/ops/conv_relu_pool and owns the memory between the steps.
///
/// Order     enqueues; the first backward pass waits once, to build what a forward pass would have left.
/// Threads   one.
/// Example   tests/nn/backend/onednn_peers_test.cpp
class Unfused {
 public:
  struct Parts {
    std::unique_ptr<Plan> conv_relu;  ///< of conv_relu_nodes
    kernels::max_pool2d::Variant pool;
    kernels::Device& device;  ///< must outlive it
  };
  Unfused(Parts parts, const kernels::conv_relu_pool::Geometry& geometry, kernels::DType dtype);

  void enqueue_forward(kernels::Stream& stream, const kernels::conv_relu_pool::ForwardArgs& args);
  /// Always uses the codes of the first call.
  void enqueue_backward(kernels::Stream& stream, const kernels::conv_relu_pool::BackwardArgs& args);

 private:
  /// Sets the memory as if a forward pass had found these codes.
  void set_codes(kernels::Stream& stream, const std::uint8_t* codes);

  Parts parts_;
  kernels::conv_relu_pool::Geometry geometry_;
  kernels::max_pool2d::Geometry pool_geometry_;
  kernels::DType dtype_;
  kernels::Buffer y_;        // of convolution and ReLU
  kernels::Buffer dy_;       // its gradient
  kernels::Buffer codes_;    // of the pooling
  kernels::Buffer no_bias_;  // conv_relu_pool's backward has no bias to pass
  kernels::Buffer saved_;
  kernels::Buffer workspace_;
  bool has_codes_ = false;
};

}  // namespace gradring::nn::bench
