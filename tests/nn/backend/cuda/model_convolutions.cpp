// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/model_convolutions.h"

#include "kernels/host/host_device.h"
#include "kernels/runtime/dry_run_device.h"

namespace gradring::tests {
namespace {

/// Computes nothing.
class EmptyPlan final : public nn::Plan {
 public:
  void enqueue_forward(kernels::Stream&, const nn::ForwardPass&) override {}
  void enqueue_backward(kernels::Stream&, const nn::BackwardPass&) override {}
};

class EmptyLossPlan final : public nn::LossPlan {
 public:
  std::size_t nodes() const override { return 0; }
  std::size_t workspace_bytes() const override { return 0; }
  void enqueue(kernels::Stream&, const nn::LossPass&) override {}
};

/// Keeps what convolutions_of returns.
class Collector final : public nn::Backend {
 public:
  std::string_view name() const override { return "collector"; }
  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override {
    const auto* const conv = std::get_if<nn::Conv2d>(&nodes.front().layer);
    if (conv && conv->bias && conv->groups == 1) convolutions.emplace_back(nodes.begin(), nodes.end());
    return std::make_unique<EmptyPlan>();
  }
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec&, const nn::NodeSpec*) override {
    return std::make_unique<EmptyLossPlan>();
  }

  std::vector<std::vector<nn::NodeSpec>> convolutions;
};

}  // namespace

std::vector<std::vector<nn::NodeSpec>> convolutions_of(const nn::Model& model, std::int64_t batch, nn::ProgramMode mode,
                                                       kernels::DType dtype) {
  const kernels::HostDevice host;
  kernels::DryRunDevice device(host);
  Collector collector;
  const nn::Program program(model, batch, mode, collector, device, dtype);
  return collector.convolutions;
}

std::vector<std::string_view> models_for_cudnn() {
  std::vector<std::string_view> models;
  for (const std::string_view name : nn::model_names())
    if (!convolutions_of(nn::make_model(name, {28, 28, 1}, 10), 1, nn::ProgramMode::training, kernels::DType::f32)
             .empty())
      models.push_back(name);
  return models;
}

}  // namespace gradring::tests
