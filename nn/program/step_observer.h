// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace gradring::nn {

/// What a program tells while it enqueues one step: DDP, ZeRO, recomputation, the memory ledger and the trace listen.
/// Calls come on the host, in the order of the work on the stream; the work itself may not have run yet. Parameters are
/// their indices in state_dict order.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before_forward() = 0;
  virtual void before_backward() = 0;
  /// The work that is enqueued next reads the weights of `parameters`; what was enqueued before does so no longer than it
  /// runs. Forward, a segment that is computed once more, backward.
  virtual void weights_needed(std::span<const int> parameters) = 0;
  /// The work that is enqueued next writes the gradients of `parameters`.
  virtual void gradients_begin(std::span<const int> parameters) = 0;
  /// All work that writes the gradient of `parameter` is enqueued.
  virtual void gradient_ready(int parameter) = 0;
};

/// Listens to nothing.
class NoObserver final : public StepObserver {
 public:
  void before_forward() override {}
  void before_backward() override {}
  void weights_needed(std::span<const int>) override {}
  void gradients_begin(std::span<const int>) override {}
  void gradient_ready(int) override {}
};

}  // namespace gradring::nn
