// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/backend/backend.h"
#include "nn/models/model.h"

namespace gradring::nn {

/// One plan of a model, and the memory that it needs from the program.
struct PlannedStage {
  std::unique_ptr<Plan> plan;
  std::vector<int> parameters;      ///< their indices in state_dict order
  std::vector<std::string> layers;  ///< their names
  std::size_t output_bytes = 0;
  double forward_work = 0;  ///< approximate multiplications: the cost of recomputing it
};

/// The loss, and the layers fused with it.
struct PlannedHead {
  std::unique_ptr<LossPlan> plan;
  std::vector<int> parameters;
  std::vector<std::string> layers;
  std::size_t logits_bytes = 0;  ///< that it writes; 0 if the last stage writes them
};

/// A model as the plans of a backend, first layer first.
struct ModelPlans {
  std::vector<PlannedStage> stages;
  PlannedHead head;
  std::size_t workspace_bytes = 0;  ///< maximum over the plans
};

struct ModelPlansSpec {
  std::int64_t batch = 0;  ///< at most
  kernels::DType dtype = kernels::DType::f32;
  bool loss_may_fuse = false;  ///< with the last layer
};

/// Errors    InvalidArgument if the layers do not fit each other or the backend.
ModelPlans plan_model(const Model& model, const ModelPlansSpec& spec, Backend& backend);

}  // namespace gradring::nn
