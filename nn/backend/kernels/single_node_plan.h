// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/plan.h"

namespace gradring::nn {

/// What most kernel plans have in common: one node, nothing saved, no workspace.
class SingleNodePlan : public Plan {
 public:
  std::size_t nodes() const final { return 1; }
  std::size_t saved_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return 0; }
};

}  // namespace gradring::nn
