// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/poisoned_backend.h"

#include <limits>
#include <utility>

namespace gradring::tests {
namespace {

class PoisonedPlan final : public nn::Plan {
 public:
  PoisonedPlan(std::unique_ptr<nn::Plan> inner, std::set<int> passes)
      : inner_(std::move(inner)), passes_(std::move(passes)) {}
  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t saved_bytes() const override { return inner_->saved_bytes(); }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  void enqueue_forward(kernels::Stream& stream, const nn::ForwardPass& pass) override {
    inner_->enqueue_forward(stream, pass);
  }
  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    inner_->enqueue_backward(stream, pass);
    if (!passes_.contains(pass_++)) return;
    stream.enqueue([weight = pass.gradients[0]] { weight[7] = std::numeric_limits<float>::quiet_NaN(); });
  }

 private:
  std::unique_ptr<nn::Plan> inner_;
  std::set<int> passes_;
  int pass_ = 0;
};

class PoisonedBackend final : public nn::Backend {
 public:
  PoisonedBackend(std::unique_ptr<nn::Backend> inner, std::set<int> passes)
      : inner_(std::move(inner)), passes_(std::move(passes)) {}
  std::string_view name() const override { return inner_->name(); }
  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override {
    constexpr std::int64_t kChannels = 32;  // that the second convolution reads
    const auto* conv = std::get_if<nn::Conv2d>(&nodes.front().layer);
    auto plan = inner_->plan(nodes);
    if (!conv || conv->in_channels != kChannels) return plan;
    return std::make_unique<PoisonedPlan>(std::move(plan), passes_);
  }
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                   const nn::NodeSpec* last) override {
    return inner_->plan_cross_entropy(spec, last);
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
