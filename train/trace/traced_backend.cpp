// SPDX-License-Identifier: Apache-2.0
#include "train/trace/traced_backend.h"

#include <string>
#include <utility>

namespace gradring::train {
namespace {

using kernels::TraceCategory;
using kernels::TraceScope;

class TracedPlan final : public nn::Plan {
 public:
  TracedPlan(std::unique_ptr<nn::Plan> inner, const char* name, TraceCategory forward, kernels::TraceTrack& track)
      : inner_(std::move(inner)), name_(name), forward_(forward), track_(track) {}

  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t saved_bytes() const override { return inner_->saved_bytes(); }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::string description() const override { return inner_->description(); }
  void enqueue_forward(kernels::Stream& stream, const nn::ForwardPass& pass) override {
    const TraceScope traced(&track_, forward_, name_);
    inner_->enqueue_forward(stream, pass);
  }
  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    const TraceScope traced(&track_, TraceCategory::backward, name_);
    inner_->enqueue_backward(stream, pass);
  }

 private:
  std::unique_ptr<nn::Plan> inner_;
  const char* name_;
  TraceCategory forward_;
  kernels::TraceTrack& track_;
};

/// In training the loss is the beginning of backward.
class TracedLoss final : public nn::LossPlan {
 public:
  TracedLoss(std::unique_ptr<nn::LossPlan> inner, const char* name, kernels::TraceTrack& track)
      : inner_(std::move(inner)), name_(name), track_(track) {}

  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::string description() const override { return inner_->description(); }
  void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
    const TraceScope traced(&track_, pass.dx ? TraceCategory::backward : TraceCategory::evaluation, name_);
    inner_->enqueue(stream, pass);
  }

 private:
  std::unique_ptr<nn::LossPlan> inner_;
  const char* name_;
  kernels::TraceTrack& track_;
};

}  // namespace

std::unique_ptr<nn::Plan> TracedBackend::plan(std::span<const nn::NodeSpec> nodes) {
  auto plan = inner_.plan(nodes);
  std::string name;
  for (const nn::NodeSpec& node : nodes.first(plan->nodes())) name += (name.empty() ? "" : ", ") + node.name;
  const bool trains = nodes.front().backward != nn::Backward::none;
  return std::make_unique<TracedPlan>(std::move(plan), names_.keep(std::move(name)),
                                      trains ? TraceCategory::forward : TraceCategory::evaluation, track_);
}

std::unique_ptr<nn::LossPlan> TracedBackend::plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                                const nn::NodeSpec* last) {
  auto plan = inner_.plan_cross_entropy(spec, last);
  const std::string layer = last && plan->nodes() > 0 ? last->name + ", " : "";
  return std::make_unique<TracedLoss>(std::move(plan), names_.keep(layer + "loss"), track_);
}

}  // namespace gradring::train
