// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/step_state/step_state.h"

namespace gradring::train {

/// The compute type that --precision names: fp32, fp16, bf16, or auto, which is fp16 on a GPU and fp32 on a CPU.
///
/// Errors    InvalidArgument for another name.
kernels::DType precision_named(std::string_view name, const kernels::DeviceId& device);

/// The inverse: "fp32", "fp16", "bf16".
std::string precision_name(kernels::DType dtype);

/// How the loss is multiplied before the backward pass, so that small gradients do not vanish in f16; the optimizer
/// divides by the same factor. bf16 has f32's range and needs none.
///
/// Source    Micikevicius and others, "Mixed precision training", 2018; the rule is that of PyTorch's GradScaler.
struct LossScaling {
  bool dynamic = false;  ///< halve on overflow, double after a while without; else the scale is 1
  float initial = 65536;
  kernels::step_state::LossScalePolicy policy;

  /// The scale of the first step.
  float first() const { return dynamic ? initial : 1.0f; }
};

/// If gradients overflow even at this scale, a smaller one does not help.
inline constexpr float kLeastLossScale = 1.0f / 65536;

}  // namespace gradring::train
