// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/cpu_backend.h"

#include "nn/backend/cpu/onednn.h"

namespace gradring::nn {

std::unique_ptr<Plan> CpuBackend::plan(std::span<const NodeSpec> nodes) {
  if (auto plan = plan_with_onednn(nodes)) return plan;
  return plans_.plan(nodes.front());
}

}  // namespace gradring::nn
