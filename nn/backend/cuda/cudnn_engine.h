// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nn/backend/cuda/cudnn_descriptor.h"

namespace gradring::nn {

/// An engine of cuDNN's with its knobs set: one way to compute a graph, not yet compiled.
struct CudnnEngineConfig {
  CudnnDescriptor descriptor;
  std::string name;  ///< "engine 12 knobs 2=1 3=0": equal for equal configurations of one version of cuDNN
};

/// What an engine must keep to, besides sums in f32.
struct CudnnEngineRules {
  bool reproducible = false;
  bool exact_products = false;  ///< f32 factors are not shortened for the tensor cores (TF32)
  std::size_t most_workspace_bytes = 0;
};

/// One way to compute a graph, ready to run.
struct CudnnEngine {
  CudnnDescriptor plan;
  std::string name;
  std::size_t workspace_bytes = 0;
};

/// How a graph can be computed, what cuDNN thinks fastest first: its heuristics A and B, then what always works. Empty if
/// it knows no way.
std::vector<CudnnEngineConfig> engine_configs(const CudnnApi& api, const CudnnDescriptor& graph);

/// Compiles a configuration; nothing if it breaks the rules, or cuDNN cannot after all.
std::optional<CudnnEngine> make_engine(const CudnnApi& api, cudnnHandle_t handle, const CudnnEngineConfig& config,
                                       const CudnnEngineRules& rules);

}  // namespace gradring::nn
