// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "kernels/host/host_device.h"
#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::tests {

/// What one forward and backward pass of some plans left in memory, as a reader sees it.
struct PlanResult {
  std::vector<double> y, dx, dw, db;  ///< db is empty of a layer without bias
};

/// A convolution or product, and the ReLU behind it, on the CPU with the same random -1, 0 and 1 for every plan that is
/// run.
class PlanRig {
 public:
  /// `nodes`: a layer with weights and, if there is a second one, a ReLU; planned for nodes[0].input[0] samples.
  explicit PlanRig(std::vector<nn::NodeSpec> nodes);

  /// Runs `batch` samples through plans that together take all nodes. Workspace and saved memory are as large as they
  /// state.
  PlanResult run(const std::vector<nn::Plan*>& plans, std::int64_t batch);
  /// The same by our own kernels, node by node.
  PlanResult run_ours(std::int64_t batch);

  const std::vector<nn::NodeSpec>& nodes() const { return nodes_; }
  kernels::HostDevice& device() { return device_; }

 private:
  std::vector<nn::NodeSpec> nodes_;
  kernels::HostDevice device_;
};

/// Fails unless the results are equal: whatever is rounded where, sums of so few -1, 0 and 1 are exact in every type.
void expect_same(const PlanResult& actual, const PlanResult& expected);

/// `layer` on samples of `sample`'s shape, with a ReLU behind it if asked for.
std::vector<nn::NodeSpec> layer_nodes(const nn::Layer& layer, const nn::Shape& input, bool relu, kernels::DType dtype);

}  // namespace gradring::tests
