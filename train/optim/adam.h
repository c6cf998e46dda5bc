// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/adam/adam.h"
#include "train/optim/optimizer.h"

namespace gradring::train {

/// Adam (L2 in the gradient) and AdamW (decoupled decay), with PyTorch's numbers.
///
/// Source    Kingma, Ba: "Adam", 2015; Loshchilov, Hutter: "Decoupled weight decay regularization", 2019.
class Adam final : public Optimizer {
 public:
  Adam(const kernels::adam::Hyper& hyper, const kernels::adam::Variant& kernel, kernels::Device& device,
       const nn::ArenaLayout& layout);
  void enqueue_step(kernels::Stream& stream, const nn::Arena& weights, const nn::Arena& gradients,
                    const kernels::step_state::StepState* state, const RoundedCopy& copy) override;
  std::vector<OptimizerState> states() override;

 private:
  kernels::adam::Hyper hyper_;
  kernels::adam::Variant kernel_;
  kernels::Buffer m_;
  kernels::Buffer v_;
};

}  // namespace gradring::train
