// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/model_convolutions.h"

#include <algorithm>
#include <tuple>

#include "kernels/host/host_device.h"
#include "kernels/runtime/dry_run_device.h"
#include "nn/backend/cuda/cudnn.h"
#include "nn/backend/kernels/kernel_plans.h"

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
    if (std::holds_alternative<nn::Conv2d>(nodes.front().layer) && !is_known(nodes.front()))
      convolutions.emplace_back(nodes.begin(), nodes.end());
    return std::make_unique<EmptyPlan>();
  }
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec&, const nn::NodeSpec*) override {
    return std::make_unique<EmptyLossPlan>();
  }

  std::vector<std::vector<nn::NodeSpec>> convolutions;

 private:
  static auto problem_of(const nn::NodeSpec& node) {
    return std::tuple(nn::ConvProblem{.geometry = nn::conv2d_geometry(node)}.key(),
                      std::get<nn::Conv2d>(node.layer).bias, node.backward);
  }
  bool is_known(const nn::NodeSpec& node) const {
    return std::ranges::any_of(convolutions,
                               [&](const auto& nodes) { return problem_of(nodes.front()) == problem_of(node); });
  }
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

std::vector<std::vector<nn::NodeSpec>> convolutions_of(std::string_view model, std::int64_t batch, nn::ProgramMode mode,
                                                       kernels::DType dtype) {
  if (model != kInGroups) return convolutions_of(nn::make_model(model, {28, 28, 1}, 10), batch, mode, dtype);
  const auto conv = [](std::int64_t out, std::int64_t groups, std::int64_t stride) {
    return nn::Conv2d{.in_channels = 128,
                      .out_channels = out,
                      .kernel = 3,
                      .stride = stride,
                      .padding = 1,
                      .groups = groups,
                      .bias = false};
  };
  std::vector<std::vector<nn::NodeSpec>> all;
  for (const auto& [name, layer] : {std::pair("depthwise", conv(128, 128, 1)),
                                    {"stride 2", conv(128, 128, 2)},
                                    {"two filters", conv(256, 128, 1)},
                                    {"32", conv(128, 32, 1)}}) {
    const nn::Shape input = {batch, 14, 14, 128};
    const auto backward = mode == nn::ProgramMode::evaluation ? nn::Backward::none
                          : all.empty()                       ? nn::Backward::parameters
                                                              : nn::Backward::all;
    all.push_back({{.layer = layer,
                    .input = input,
                    .output = nn::output_of(layer, input).shape,
                    .dtype = dtype,
                    .name = name,
                    .backward = backward}});
  }
  return all;
}

std::vector<std::string_view> models_for_cudnn() {
  std::vector<std::string_view> models;
  for (const std::string_view name : nn::model_names())
    if (!convolutions_of(name, 1, nn::ProgramMode::training, kernels::DType::f32).empty()) models.push_back(name);
  models.push_back(kInGroups);
  return models;
}

}  // namespace gradring::tests
