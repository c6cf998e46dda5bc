// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/sgd/sgd.h"
#include "train/optim/optimizer.h"

namespace gradring::train {

/// Stochastic gradient descent with momentum, dampening, Nesterov's form and L2, with PyTorch's numbers.
class Sgd final : public Optimizer {
 public:
  Sgd(const kernels::sgd::Hyper& hyper, const kernels::sgd::Variant& kernel, kernels::Device& device,
      const nn::ArenaLayout& layout);
  void enqueue_step(kernels::Stream& stream, const nn::Arena& weights, const nn::Arena& gradients,
                    const kernels::step_state::StepState* state, const RoundedCopy& copy) override;
  std::vector<OptimizerState> states() override;

 private:
  kernels::sgd::Hyper hyper_;
  kernels::sgd::Variant kernel_;
  kernels::Buffer momentum_;  // empty without momentum
};

}  // namespace gradring::train
