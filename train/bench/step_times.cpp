// SPDX-License-Identifier: Apache-2.0
#include "train/bench/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nn/models/model.h"

namespace gradring::train::bench {
namespace {

class TimedPlan final : public nn::PlanDecorator {
 public:
  TimedPlan(std::unique_ptr<nn::Plan> inner, const std::string& name, StepTimes& times)
      : PlanDecorator(std::move(inner)), forward_("forward   " + name), backward_("backward  " + name), times_(times) {}

  void enqueue_statistics(kernels::Stream& stream, const nn::ForwardPass& pass) override {
    const TimedPart timed(times_, forward_);
    PlanDecorator::enqueue_statistics(stream, pass);
  }
  void enqueue_sums(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    const TimedPart timed(times_, backward_);
    PlanDecorator::enqueue_sums(stream, pass);
  }
  void enqueue_forward(kernels::Stream& stream, const nn::ForwardPass& pass) override {
    const TimedPart timed(times_, forward_);
    PlanDecorator::enqueue_forward(stream, pass);
  }
  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    const TimedPart timed(times_, backward_);
    PlanDecorator::enqueue_backward(stream, pass);
  }

 private:
  std::string forward_;
  std::string backward_;
  StepTimes& times_;
};

class TimedLoss final : public nn::LossPlanDecorator {
 public:
  TimedLoss(std::unique_ptr<nn::LossPlan> inner, StepTimes& times)
      : LossPlanDecorator(std::move(inner)), times_(times) {}

  void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
    const TimedPart timed(times_, "loss");
    LossPlanDecorator::enqueue(stream, pass);
  }

 private:
  StepTimes& times_;
};

}  // namespace

StepTimes::Row& StepTimes::row(std::string_view part) {
  const auto found = std::ranges::find(rows_, part, &Row::name);
  if (found != rows_.end()) return *found;
  // A new part took no time in earlier steps.
  return rows_.emplace_back(Row{.name = std::string(part), .running = 0, .steps = std::vector<double>(whole_.size())});
}

void StepTimes::add(std::string_view part, Duration duration) { row(part).running += duration.count(); }

void StepTimes::end_step(Duration whole) {
  whole_.push_back(whole.count());
  for (Row& row : rows_) row.steps.push_back(std::exchange(row.running, 0));
}

void StepTimes::clear() {
  rows_.clear();
  whole_.clear();
}

StepTimes::Table StepTimes::table() const {
  Table table{.step = kernels::bench::statistics_of(whole_), .parts = {}};
  std::vector<double> rest = whole_;
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= row.steps[i];
    table.parts.push_back({row.name, kernels::bench::statistics_of(row.steps)});
  }
  table.parts.push_back({"the rest", kernels::bench::statistics_of(rest)});
  return table;
}

std::string name_of(const nn::Layer& layer) {
  const std::string sizes = std::visit([](const auto& one) { return one.sizes(); }, layer);
  return std::string(nn::kind_of(layer)) + (sizes.empty() ? "" : " ") + sizes;
}

std::unique_ptr<nn::Plan> TimedBackend::plan(std::span<const nn::NodeSpec> nodes) {
  auto plan = BackendDecorator::plan(nodes);
  std::string name;
  for (const nn::NodeSpec& node : nodes.first(plan->nodes())) name += (name.empty() ? "" : ", ") + name_of(node.layer);
  const int number = ++planned_[name];
  if (number > 1) name += fmt::format(" #{}", number);
  return std::make_unique<TimedPlan>(std::move(plan), name, times_);
}

std::unique_ptr<nn::LossPlan> TimedBackend::plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                               const nn::NodeSpec* last) {
  return std::make_unique<TimedLoss>(BackendDecorator::plan_cross_entropy(spec, last), times_);
}

}  // namespace gradring::train::bench
