// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "kernels/runtime/stream.h"
#include "train/bench/step_times.h"

namespace gradring::train::bench {

/// A stream that says how long its copies take, and its waits for events of other streams: on a stream that runs in place,
/// how long the step waits for its all-reduce.
///
/// Threads   as the stream behind it. `times` must outlive it.
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

 private:
  std::unique_ptr<kernels::Stream> inner_;
  StepTimes& times_;
};

}  // namespace gradring::train::bench
