// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/runtime/stream.h"

namespace gradring::nn {

/// Pointers of one evaluation of the loss. Activations and parameters are of the type that was planned for.
struct LossPass {
  std::int64_t rows = 0;
  const void* x = nullptr;  ///< the logits [rows, classes]; of a plan with a node, that node's input
  std::span<const void* const> parameters = {};  ///< of the plan's node, in state_dict order
  const std::int32_t* labels = nullptr;          ///< [rows], each in [0, classes)
  float scale = 1;                               ///< 1 / samples of the whole window, over all ranks
  const float* loss_scale = nullptr;             ///< on the device: mixed precision's factor; null: 1
  void* logits = nullptr;  ///< [rows, classes], that a plan with a node leaves; null to leave it out
  void* dx = nullptr;      ///< gradient of scale * *loss_scale * sum of losses; null to leave it out, with `gradients`
  std::span<float* const> gradients = {};  ///< of the parameters, same order, always f32; overwritten
  float* loss_sum = nullptr;               ///< sum of the rows' losses, unscaled; overwritten
  std::int32_t* correct = nullptr;         ///< rows whose largest logit is the label's; overwritten
  std::byte* workspace = nullptr;
};

/// A loss over a batch, forward and backward in one; with it, where a kernel has them fused, the linear layer that gives
/// the logits.
class LossPlan {
 public:
  virtual ~LossPlan() = default;
  /// How many of a model's last nodes this plan computes: 0 or 1.
  virtual std::size_t nodes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  /// As of a Plan.
  virtual std::string description() const { return {}; }
  virtual void enqueue(kernels::Stream& stream, const LossPass& pass) = 0;
};

}  // namespace gradring::nn
