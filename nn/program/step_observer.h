// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace gradring::nn {

/// Callbacks of a program while it enqueues one step, for gradient reduction, weight gathering, memory accounting and traces.
/// Calls come on the host in the order of the work on the stream, which may not have run yet. Parameters are indices in
/// state_dict order. All hooks default to nothing.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before_forward() {}
  virtual void before_backward() {}
  /// The work enqueued next reads the weights of `parameters`: forward, recomputation or backward. Work enqueued before has read
  /// them once it has run.
  virtual void weights_needed(std::span<const int> /*parameters*/) {}
  /// The work enqueued next writes the gradients of `parameters`.
  virtual void gradients_begin(std::span<const int> /*parameters*/) {}
  /// All work that writes the gradient of `parameter` is enqueued.
  virtual void gradient_ready(int /*parameter*/) {}
};

/// Ignores all calls.
class NoObserver final : public StepObserver {};

/// Forwards each call to `first`, then to `second`. Both must outlive it.
class ObserverPair final : public StepObserver {
 public:
  ObserverPair(StepObserver& first, StepObserver& second) : first_(first), second_(second) {}

  void before_forward() override {
    first_.before_forward();
    second_.before_forward();
  }
  void before_backward() override {
    first_.before_backward();
    second_.before_backward();
  }
  void weights_needed(std::span<const int> parameters) override {
    first_.weights_needed(parameters);
    second_.weights_needed(parameters);
  }
  void gradients_begin(std::span<const int> parameters) override {
    first_.gradients_begin(parameters);
    second_.gradients_begin(parameters);
  }
  void gradient_ready(int parameter) override {
    first_.gradient_ready(parameter);
    second_.gradient_ready(parameter);
  }

 private:
  StepObserver& first_;
  StepObserver& second_;
};

}  // namespace gradring::nn
