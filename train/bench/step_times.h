// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/bench/statistics.h"
#include "kernels/runtime/stream.h"
#include "nn/backend/decorators.h"
#include "train/core/optim/optimizer.h"

namespace gradring::train::bench {

/// The time of each named part of training steps. A part that runs several times in a step counts with the sum. Time
/// outside all parts is "the rest".
///
/// Threads   one.
class StepTimes {
 public:
  using Duration = std::chrono::duration<double>;

  void add(std::string_view part, Duration duration);
  /// Ends a step that took `whole`.
  void end_step(Duration whole);
  /// Discards all measurements, such as those of warm-up steps.
  void clear();

  struct Part {
    std::string name;
    kernels::bench::Statistics seconds;
  };
  struct Table {
    kernels::bench::Statistics step;  ///< seconds
    std::vector<Part> parts;          ///< in order of first use; "the rest" is last
  };
  /// Errors    InvalidArgument if no step has ended.
  Table table() const;

 private:
  struct Row {
    std::string name;
    double running = 0;           // of the current step
    std::vector<double> steps{};  // of completed steps
  };
  Row& row(std::string_view part);

  std::vector<Row> rows_;
  std::vector<double> whole_;
};

/// Adds its lifetime to a part.
class TimedPart {
 public:
  TimedPart(StepTimes& times, std::string_view part) : times_(times), part_(part), begin_(Clock::now()) {}
  ~TimedPart() { times_.add(part_, Clock::now() - begin_); }
  TimedPart(const TimedPart&) = delete;
  TimedPart& operator=(const TimedPart&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  StepTimes& times_;
  std::string_view part_;
  Clock::time_point begin_;
};

/// A backend that times the plans it wraps. Only on streams that execute in the calling thread does this measure the
/// work itself.
///
///   times: "forward   conv2d 1->32, relu", "forward   max_pool2d 2", ..., "forward   max_pool2d 2 #2", "loss", ...
///
/// Threads   as `inner`. `inner` and `times` must outlive this and its plans.
class TimedBackend final : public nn::BackendDecorator {
 public:
  TimedBackend(nn::Backend& inner, StepTimes& times) : BackendDecorator(inner), times_(times) {}

  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override;
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec, const nn::NodeSpec* last) override;

 private:
  StepTimes& times_;
  std::map<std::string, int> planned_;  // number of plans of each name
};

/// "conv2d 1->32", "relu", "max_pool2d 2", "linear 1600->256".
std::string name_of(const nn::Layer& layer);

/// An optimizer that times its steps. `times` must outlive it.
class TimedOptimizer final : public Optimizer {
 public:
  TimedOptimizer(std::unique_ptr<Optimizer> inner, StepTimes& times) : inner_(std::move(inner)), times_(times) {}

  void enqueue_begin(kernels::Stream& stream, std::span<const UpdateSlice> slices) override {
    inner_->enqueue_begin(stream, slices);
  }
  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                    const kernels::step_state::StepState* state, const float* learning_rates,
                    const kernels::StepEnd& end) override {
    const TimedPart timed(times_, "optimizer");
    inner_->enqueue_step(stream, slices, state, learning_rates, end);
  }
  std::size_t bytes() const override { return inner_->bytes(); }
  std::vector<OptimizerState> states() override { return inner_->states(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  StepTimes& times_;
};

/// A stream that times its copies and its waits for events of other streams. On a stream that executes in the calling
/// thread, the latter is the time the step waits for its all-reduce.
///
/// Threads   as `inner`. `times` must outlive it.
class TimedStream final : public kernels::Stream {
 public:
  TimedStream(std::unique_ptr<kernels::Stream> inner, StepTimes& times) : inner_(std::move(inner)), times_(times) {}

  void enqueue(std::function<void()> work) override { inner_->enqueue(std::move(work)); }
  void enqueue_copy(void* to, const void* from, std::size_t bytes) override {
    const TimedPart timed(times_, "copies");
    inner_->enqueue_copy(to, from, bytes);
  }
  void enqueue_zero(void* to, std::size_t bytes) override { inner_->enqueue_zero(to, bytes); }
  void record(kernels::Event& event) override { inner_->record(event); }
  void enqueue_wait(const kernels::Event& event) override {
    const TimedPart timed(times_, "waiting for the all-reduce");
    inner_->enqueue_wait(event);
  }
  void synchronize(Deadline deadline) override { inner_->synchronize(deadline); }
  void* native_handle() override { return inner_->native_handle(); }
  int device_index() const override { return inner_->device_index(); }

 private:
  std::unique_ptr<kernels::Stream> inner_;
  StepTimes& times_;
};

}  // namespace gradring::train::bench
