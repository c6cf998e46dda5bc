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
       std::size_t elements);
  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                    const kernels::step_state::StepState* state) override;
  std::vector<OptimizerState> states() override;
  std::size_t bytes() const override { return m_.size() + v_.size(); }

 private:
  kernels::adam::Hyper hyper_of(const UpdateSlice& slice) const;

  kernels::adam::Hyper hyper_;
  kernels::adam::Variant kernel_;
  kernels::Buffer m_;
  kernels::Buffer v_;
};

}  // namespace gradring::train
