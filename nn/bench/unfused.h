// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/conv_relu_pool/conv_relu_pool.h"
#include "kernels/max_pool2d/max_pool2d.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"

namespace gradring::nn::bench {

/// The convolution of a conv_relu_pool and its ReLU, as a library plans them.
std::vector<NodeSpec> conv_relu_nodes(const kernels::conv_relu_pool::Geometry& geometry, kernels::DType dtype);

/// conv_relu_pool in two steps through memory: what a library makes of it that cannot pool. Convolution and ReLU are its
/// plan's, the pooling is our kernel. Fulfils the contract of kernels/conv_relu_pool, so that the two can be compared; what
/// flows between the steps it owns.
///
/// Order     enqueues; the first backward pass waits once, to lay out what a forward pass would have left.
/// Threads   one.
/// Example   tests/nn/bench/onednn_peers_test.cpp
class Unfused {
 public:
  struct Parts {
    std::unique_ptr<Plan> conv_relu;  ///< of conv_relu_nodes
    kernels::max_pool2d::Variant pool;
    kernels::Device& device;  ///< must outlive it
  };
  Unfused(Parts parts, const kernels::conv_relu_pool::Geometry& geometry, kernels::DType dtype);

  void enqueue_forward(kernels::Stream& stream, const kernels::conv_relu_pool::ForwardArgs& args);
  /// Always the same codes: those of the first call.
  void enqueue_backward(kernels::Stream& stream, const kernels::conv_relu_pool::BackwardArgs& args);

 private:
  /// As if a forward pass had found these codes.
  void lay_out(kernels::Stream& stream, const std::uint8_t* codes);

  Parts parts_;
  kernels::conv_relu_pool::Geometry geometry_;
  kernels::max_pool2d::Geometry pool_geometry_;
  kernels::DType dtype_;
  kernels::Buffer y_;        // of convolution and ReLU
  kernels::Buffer dy_;       // its gradient
  kernels::Buffer codes_;    // of the pooling
  kernels::Buffer no_bias_;  // backward has none to give, and the plan reads none that matters
  kernels::Buffer saved_;
  kernels::Buffer workspace_;
  bool laid_out_ = false;
};

}  // namespace gradring::nn::bench
