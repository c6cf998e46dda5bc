// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "nn/backend/backend.h"
#include "train/bench/step_times.h"

namespace gradring::train::bench {

/// A backend whose plans say how long they take: each is wrapped, and computes as before. Only on streams that run in
/// place does that mean the work itself.
///
///   times: "forward   conv2d 1->32, relu", "forward   max_pool2d 2", ..., "forward   max_pool2d 2 #2", ..., "loss", ...
///
/// Threads   as the backend behind it. `inner` and `times` must outlive this and its plans.
class TimedBackend final : public nn::Backend {
 public:
  TimedBackend(nn::Backend& inner, StepTimes& times) : inner_(inner), times_(times) {}

  std::string_view name() const override { return inner_.name(); }
  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override;
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec, const nn::NodeSpec* last) override;

 private:
  nn::Backend& inner_;
  StepTimes& times_;
  std::map<std::string, int> planned_;  // how many plans of each name
};

/// "conv2d 1->32", "relu", "max_pool2d 2", "linear 1600->256".
std::string name_of(const nn::Layer& layer);

}  // namespace gradring::train::bench
