// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/ema/ema.h"
#include "train/optim/optimizer.h"

namespace gradring::train {

/// Behind another optimizer, keeps an exponential moving average of the weights that it updates: of the same slices, so it is
/// shared out as they are. It begins as the first weights; the first applied step makes it those after it, as PyTorch's
/// AveragedModel does.
///
/// Source    torch.optim.swa_utils.AveragedModel with an avg_fn.
class Ema final : public Optimizer {
 public:
  Ema(std::unique_ptr<Optimizer> inner, double decay, const kernels::ema::Variant& kernel, kernels::Device& device,
      std::size_t elements);
  void enqueue_begin(kernels::Stream& stream, std::span<const UpdateSlice> slices) override;
  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                    const kernels::step_state::StepState* state) override;
  std::vector<OptimizerState> states() override;
  std::size_t bytes() const override { return inner_->bytes() + average_.size(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  double decay_;
  kernels::ema::Variant kernel_;
  kernels::Buffer average_;
};

}  // namespace gradring::train
