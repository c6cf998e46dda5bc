// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/bench/step_times.h"
#include "train/optim/optimizer.h"

namespace gradring::train::bench {

/// An optimizer that says how long it takes. `times` must outlive it.
class TimedOptimizer final : public Optimizer {
 public:
  TimedOptimizer(std::unique_ptr<Optimizer> inner, StepTimes& times) : inner_(std::move(inner)), times_(times) {}

  void enqueue_begin(kernels::Stream& stream, std::span<const UpdateSlice> slices) override {
    inner_->enqueue_begin(stream, slices);
  }
  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                    const kernels::step_state::StepState* state) override {
    const TimedPart timed(times_, "optimizer");
    inner_->enqueue_step(stream, slices, state);
  }
  std::size_t bytes() const override { return inner_->bytes(); }
  std::vector<OptimizerState> states() override { return inner_->states(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  StepTimes& times_;
};

}  // namespace gradring::train::bench
