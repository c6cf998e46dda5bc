// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/traced_backend.h"

#include <string>
#include <utility>

namespace gradring::train {
namespace {

using kernels::TraceCategory;
using kernels::TraceScope;

class TracedPlan final : public nn::PlanDecorator {
 public:
  TracedPlan(std::unique_ptr<nn::Plan> inner, const char* name, TraceCategory forward, kernels::TraceTrack& track)
      : PlanDecorator(std::move(inner)), name_(name), forward_(forward), track_(track) {}

  void enqueue_forward(kernels::Stream& stream, const nn::ForwardPass& pass) override {
    const TraceScope traced(&track_, forward_, name_);
    PlanDecorator::enqueue_forward(stream, pass);
  }
  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    const TraceScope traced(&track_, TraceCategory::backward, name_);
    PlanDecorator::enqueue_backward(stream, pass);
  }

 private:
  const char* name_;
  TraceCategory forward_;
  kernels::TraceTrack& track_;
};

/// In training the loss is the beginning of backward.
class TracedLoss final : public nn::LossPlanDecorator {
 public:
  TracedLoss(std::unique_ptr<nn::LossPlan> inner, const char* name, kernels::TraceTrack& track)
      : LossPlanDecorator(std::move(inner)), name_(name), track_(track) {}

  void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
    const TraceScope traced(&track_, pass.dx ? TraceCategory::backward : TraceCategory::evaluation, name_);
    LossPlanDecorator::enqueue(stream, pass);
  }

 private:
  const char* name_;
  kernels::TraceTrack& track_;
};

}  // namespace

std::unique_ptr<nn::Plan> TracedBackend::plan(std::span<const nn::NodeSpec> nodes) {
  auto plan = BackendDecorator::plan(nodes);
  std::string name;
  for (const nn::NodeSpec& node : nodes.first(plan->nodes())) name += (name.empty() ? "" : ", ") + node.name;
  const bool trains = nodes.front().backward != nn::Backward::none;
  return std::make_unique<TracedPlan>(std::move(plan), names_.keep(std::move(name)),
                                      trains ? TraceCategory::forward : TraceCategory::evaluation, track_);
}

std::unique_ptr<nn::LossPlan> TracedBackend::plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                                const nn::NodeSpec* last) {
  auto plan = BackendDecorator::plan_cross_entropy(spec, last);
  const std::string layer = last && plan->nodes() > 0 ? last->name + ", " : "";
  return std::make_unique<TracedLoss>(std::move(plan), names_.keep(layer + "loss"), track_);
}

}  // namespace gradring::train
