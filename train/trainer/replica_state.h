// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/step_state/step_state.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// All that a replica carries from one step to the next, in host memory and in PyTorch's names and orders: nothing tells
/// how many ranks there were.
struct ReplicaState {
  std::vector<TensorRecord> model;  ///< the weights, in f32
  std::vector<TensorRecord> state;  ///< the optimizer's: "exp_avg.conv_layers.0.weight", ...
  kernels::step_state::StepState step;
};

}  // namespace gradring::train
