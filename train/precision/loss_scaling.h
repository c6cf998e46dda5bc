// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/dtype.h"
#include "kernels/step_state/step_state.h"
#include "train/config/train_config.h"

namespace gradring::train {

/// How the loss is multiplied before the backward pass, so that small gradients do not vanish in f16; the optimizer divides
/// them again. bf16 has f32's range, so f16 alone
/// needs it.
///
/// Source    Micikevicius and others, "Mixed precision training", 2018; the rule is that of PyTorch's GradScaler.
struct LossScaling {
  bool dynamic = false;  ///< halve on overflow, double after a while without; else the loss stays as it is
  float initial = 65536;
  kernels::step_state::LossScalePolicy policy;

  /// What the first step multiplies by.
  float first() const { return dynamic ? initial : 1.0f; }
};

/// What a run in `precision` does: scale in f16, as the options say, and not in f32 and bf16.
inline LossScaling loss_scaling_for(const TrainConfig& config, kernels::DType precision) {
  LossScaling scaling{.dynamic = precision == kernels::DType::f16, .initial = static_cast<float>(config.loss_scale)};
  scaling.policy.growth_interval = static_cast<std::int32_t>(config.loss_scale_interval);
  return scaling;
}

/// Where even so small a scale makes gradients overflow, it is not the scale that is at fault.
inline constexpr float kLeastLossScale = 1.0f / 65536;

}  // namespace gradring::train
