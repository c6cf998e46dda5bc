// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/poisoned_backend.h"

#include <limits>
#include <utility>

#include "nn/backend/decorators.h"

namespace gradring::tests {
namespace {

class PoisonedPlan final : public nn::PlanDecorator {
 public:
  PoisonedPlan(std::unique_ptr<nn::Plan> inner, std::set<int> passes)
      : PlanDecorator(std::move(inner)), passes_(std::move(passes)) {}
  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    PlanDecorator::enqueue_backward(stream, pass);
    if (!passes_.contains(pass_++)) return;
    stream.enqueue([weight = pass.gradients[0]] { weight[7] = std::numeric_limits<float>::quiet_NaN(); });
  }

 private:
  std::set<int> passes_;
  int pass_ = 0;
};

class PoisonedBackend final : public nn::BackendDecorator {
 public:
  PoisonedBackend(std::unique_ptr<nn::Backend> inner, std::set<int> passes)
      : BackendDecorator(*inner), inner_(std::move(inner)), passes_(std::move(passes)) {}
  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override {
    constexpr std::int64_t kChannels = 32;  // that the second convolution reads
    const auto* conv = std::get_if<nn::Conv2d>(&nodes.front().layer);
    auto plan = inner_->plan(nodes);
    if (!conv || conv->in_channels != kChannels) return plan;
    return std::make_unique<PoisonedPlan>(std::move(plan), passes_);
  }

 private:
  std::unique_ptr<nn::Backend> inner_;
  std::set<int> passes_;
};

}  // namespace

std::unique_ptr<nn::Backend> poisoned_backend(std::unique_ptr<nn::Backend> inner, std::set<int> passes) {
  return std::make_unique<PoisonedBackend>(std::move(inner), std::move(passes));
}

}  // namespace gradring::tests
