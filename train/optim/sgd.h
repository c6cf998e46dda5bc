// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/sgd/sgd.h"
#include "train/optim/optimizer.h"

namespace gradring::train {

/// Stochastic gradient descent with momentum, dampening, Nesterov's form and L2, with PyTorch's numbers.
class Sgd final : public Optimizer {
 public:
  Sgd(const kernels::sgd::Hyper& hyper, const kernels::sgd::Variant& kernel, kernels::Device& device,
      std::size_t elements);
  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                    const kernels::step_state::StepState* state) override;
  std::vector<OptimizerState> states() override;
  std::size_t bytes() const override { return momentum_.size(); }

 private:
  kernels::sgd::Hyper hyper_of(const UpdateSlice& slice) const;

  kernels::sgd::Hyper hyper_;
  kernels::sgd::Variant kernel_;
  kernels::Buffer momentum_;  // empty without momentum
};

}  // namespace gradring::train
