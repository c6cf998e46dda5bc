// SPDX-License-Identifier: Apache-2.0
#include "train/bench/timed_backend.h"

#include <fmt/format.h>

#include "nn/layers/overloaded.h"

namespace gradring::train::bench {
namespace {

class TimedPlan final : public nn::Plan {
 public:
  TimedPlan(std::unique_ptr<nn::Plan> inner, const std::string& name, StepTimes& times)
      : inner_(std::move(inner)), forward_("forward   " + name), backward_("backward  " + name), times_(times) {}

  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t saved_bytes() const override { return inner_->saved_bytes(); }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::string description() const override { return inner_->description(); }
  void enqueue_forward(kernels::Stream& stream, const nn::ForwardPass& pass) override {
    const TimedPart timed(times_, forward_);
    inner_->enqueue_forward(stream, pass);
  }
  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    const TimedPart timed(times_, backward_);
    inner_->enqueue_backward(stream, pass);
  }

 private:
  std::unique_ptr<nn::Plan> inner_;
  std::string forward_;
  std::string backward_;
  StepTimes& times_;
};

class TimedLoss final : public nn::LossPlan {
 public:
  TimedLoss(std::unique_ptr<nn::LossPlan> inner, StepTimes& times) : inner_(std::move(inner)), times_(times) {}

  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::string description() const override { return inner_->description(); }
  void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
    const TimedPart timed(times_, "loss");
    inner_->enqueue(stream, pass);
  }

 private:
  std::unique_ptr<nn::LossPlan> inner_;
  StepTimes& times_;
};

}  // namespace

std::string name_of(const nn::Layer& layer) {
  const std::string sizes =
      std::visit(nn::Overloaded{
                     [](const nn::Conv2d& conv) { return fmt::format(" {}->{}", conv.in_channels, conv.out_channels); },
                     [](const nn::MaxPool2d& pool) { return fmt::format(" {}", pool.window); },
                     [](const nn::Linear& fc) { return fmt::format(" {}->{}", fc.in_features, fc.out_features); },
                     [](const auto&) { return std::string(); },
                 },
                 layer);
  return std::string(nn::kind_of(layer)) + sizes;
}

std::unique_ptr<nn::Plan> TimedBackend::plan(std::span<const nn::NodeSpec> nodes) {
  auto plan = inner_.plan(nodes);
  std::string name;
  for (const nn::NodeSpec& node : nodes.first(plan->nodes())) name += (name.empty() ? "" : ", ") + name_of(node.layer);
  const int number = ++planned_[name];
  if (number > 1) name += fmt::format(" #{}", number);
  return std::make_unique<TimedPlan>(std::move(plan), name, times_);
}

std::unique_ptr<nn::LossPlan> TimedBackend::plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                               const nn::NodeSpec* last) {
  return std::make_unique<TimedLoss>(inner_.plan_cross_entropy(spec, last), times_);
}

}  // namespace gradring::train::bench
