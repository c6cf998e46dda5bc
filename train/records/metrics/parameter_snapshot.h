// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradring::train {

/// A parameter, or its gradient, in host memory.
struct ParameterValues {
  std::string name{};                 ///< in the state_dict: "conv_layers.0.weight"
  std::vector<std::int64_t> shape{};  ///< PyTorch's: [out, in, height, width]
  std::vector<float> values{};        ///< row-major
};

/// The parameters after a step, in state_dict order.
struct ParameterSnapshot {
  std::int64_t step = 0;
  std::vector<ParameterValues> weights{};    ///< f32, those that the optimizer updates
  std::vector<ParameterValues> gradients{};  ///< means of that step before clipping; empty where no rank has them
};

}  // namespace gradring::train
