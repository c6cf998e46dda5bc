// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runtime/stream.h"

namespace gradring::nn {

/// Pointers of one evaluation of the loss.
struct LossPass {
  std::int64_t rows = 0;
  const void* logits = nullptr;          ///< [rows, classes], of the type that was planned for
  const std::int32_t* labels = nullptr;  ///< [rows], each in [0, classes)
  float scale = 1;                       ///< 1 / samples of the whole window, over all ranks
  const float* loss_scale = nullptr;     ///< on the device: mixed precision's factor; null: 1
  void* dlogits = nullptr;  ///< [rows, classes], gradient of scale * *loss_scale * sum of losses; null to leave it out
  float* loss_sum = nullptr;        ///< sum of the rows' losses, unscaled; overwritten
  std::int32_t* correct = nullptr;  ///< rows whose largest logit is the label's; overwritten
  std::byte* workspace = nullptr;
};

/// A loss over a batch of logits, forward and backward in one.
class LossPlan {
 public:
  virtual ~LossPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void enqueue(kernels::Stream& stream, const LossPass& pass) = 0;
};

}  // namespace gradring::nn
