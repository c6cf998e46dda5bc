// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/program/step_observer.h"

namespace gradring::nn {

/// Two observers that listen to one program; each call comes to `first` first. Both must outlive it.
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
