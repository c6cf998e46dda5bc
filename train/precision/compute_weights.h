// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cast/cast.h"
#include "kernels/runtime/device.h"
#include "nn/parameter/weights.h"
#include "train/optim/optimizer.h"

namespace gradring::train {

/// The weights that the layers read. In f32 they are the master weights themselves; in f16 and bf16 a rounded copy of them,
/// which the optimizer renews as it updates the master weights.
class ComputeWeights {
 public:
  /// `master` and `cast` must outlive it.
  ComputeWeights(const nn::Arena& master, kernels::DType dtype, kernels::Device& device,
                 const kernels::cast::Variant& cast);

  nn::Weights view() const;
  /// Where the optimizer is to leave the copy; nowhere in f32.
  RoundedCopy copy() const;
  /// Rounds all master weights: once they were drawn or loaded, not after an optimizer's step.
  void enqueue_refresh(kernels::Stream& stream);

 private:
  bool copied() const { return dtype_ != kernels::DType::f32; }

  const nn::Arena& master_;
  kernels::DType dtype_;
  kernels::cast::Variant cast_;
  kernels::Buffer copy_;  // empty in f32
};

}  // namespace gradring::train
