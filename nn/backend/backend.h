// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/runtime/dtype.h"
#include "nn/backend/plan.h"
#include "nn/layers/layer.h"
#include "nn/losses/loss_plan.h"

namespace gradring::nn {

/// One layer of a program with its shapes filled in; the batch extent is the largest batch that will ever be run.
struct NodeSpec {
  Layer layer;
  Shape input;
  Shape output;
  kernels::DType dtype = kernels::DType::f32;  ///< of activations and weights; gradients of parameters are always f32
  std::string name = {};                       ///< of the layer, in its model
};

/// The loss behind a program's last node.
struct CrossEntropySpec {
  std::int64_t rows = 0;  ///< at most, in one call
  std::int64_t classes = 0;
  kernels::DType dtype = kernels::DType::f32;  ///< of the logits and their gradient
};

/// Turns layers into work for a device: the one door to the libraries and kernels that compute. `reference` is complete
/// and slow, the truth in tests; `cpu` is oneDNN plus our kernels; `cuda` is cuDNN and cuBLAS plus our kernels.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  /// Plans a first part of `nodes`: one node, or as many consecutive ones as this backend computes at once (convolution
  /// and ReLU, say). The plan says how many it took. Flatten nodes never come here.
  ///
  /// Errors    InvalidArgument if the first node is of a kind, type or size that this backend cannot compute;
  ///           DeviceError if the library behind it fails.
  virtual std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) = 0;

  /// Plans softmax and cross-entropy; with them the node that gives the logits, if this backend computes it at once with
  /// its loss and all gradients. `last` is null where that node must be planned by itself.
  virtual std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) = 0;
};

}  // namespace gradring::nn
