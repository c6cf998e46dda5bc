// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::nn {

/// What a program tells while it enqueues one step: DDP, ZeRO, recomputation, the memory ledger and the trace listen.
/// Calls come on the host, in the order of the work on the stream; the work itself may not have run yet.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before_forward() = 0;
  virtual void before_backward() = 0;
  /// All work that writes the gradient of `parameter` (its index in state_dict order) is enqueued.
  virtual void gradient_ready(int parameter) = 0;
};

/// Listens to nothing.
class NoObserver final : public StepObserver {
 public:
  void before_forward() override {}
  void before_backward() override {}
  void gradient_ready(int) override {}
};

}  // namespace gradring::nn
