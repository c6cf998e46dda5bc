// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/runtime/stream.h"

namespace gradring::nn {

/// Pointers of one forward pass through a plan. Activations and parameters are of the type that the nodes were planned for
/// (NodeSpec::dtype), NHWC or [n, features].
struct ForwardPass {
  std::int64_t batch = 0;  ///< samples in this call; at most the planned batch
  const void* x = nullptr;
  void* y = nullptr;
  std::span<const void* const> parameters;  ///< of the plan's nodes, in state_dict order
  std::byte* saved = nullptr;               ///< the plan's saved_bytes(), kept until backward
  std::byte* workspace = nullptr;           ///< the plan's workspace_bytes(), lent for this call
};

/// Pointers of one backward pass. x, y, parameters, saved: as in the forward pass before it.
struct BackwardPass {
  std::int64_t batch = 0;
  const void* x = nullptr;
  const void* y = nullptr;
  void* dy = nullptr;  ///< gradient of y; backward may overwrite it
  void* dx = nullptr;  ///< gradient of x; null for the first plan of a program, where nobody asks for it
  std::span<const void* const> parameters;
  std::span<float* const> gradients;  ///< of the parameters, same order, always f32; overwritten
  std::byte* saved = nullptr;
  std::byte* workspace = nullptr;
};

/// How a backend computes one node or a few consecutive ones, for a fixed largest batch. A plan owns no activations:
/// the program lends it what it states here.
///
/// Order     forward and backward enqueue on the stream and return.
/// Threads   one thread at a time.
class Plan {
 public:
  virtual ~Plan() = default;
  /// How many consecutive nodes this plan computes.
  virtual std::size_t nodes() const = 0;
  /// Memory that forward fills for backward besides x and y (pooling's argmax codes, for example).
  virtual std::size_t saved_bytes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  /// What computes it, for people: the library, or the kernel's table and variant ("conv2d/direct"); empty: nobody said.
  virtual std::string description() const { return {}; }
  virtual void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) = 0;
  virtual void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) = 0;
};

}  // namespace gradring::nn
