// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "kernels/runtime/trace_track.h"
#include "nn/backend/decorators.h"
#include "train/records/trace/trace_names.h"

namespace gradring::train {

/// A backend that records each call of its plans, by the names of their layers. Only on streams that execute in the
/// calling thread are these the times of the work itself.
///
/// Threads   as `inner`. All arguments must outlive it and its plans.
class TracedBackend final : public nn::BackendDecorator {
 public:
  TracedBackend(nn::Backend& inner, kernels::TraceTrack& track, TraceNames& names)
      : BackendDecorator(inner), track_(track), names_(names) {}

  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override;
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec, const nn::NodeSpec* last) override;

 private:
  kernels::TraceTrack& track_;
  TraceNames& names_;
};

}  // namespace gradring::train
