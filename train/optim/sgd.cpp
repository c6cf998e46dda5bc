// SPDX-License-Identifier: Apache-2.0
#include "train/optim/sgd.h"

#include "train/optim/state_arena.h"

namespace gradring::train {

Sgd::Sgd(const kernels::sgd::Hyper& hyper, const kernels::sgd::Variant& kernel, kernels::Device& device,
         std::size_t elements)
    : hyper_(hyper), kernel_(kernel) {
  if (hyper.momentum != 0) momentum_ = make_state_arena(device, elements);
}

void Sgd::enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                       const kernels::step_state::StepState* state) {
  for (const UpdateSlice& slice : slices)
    kernel_.run(stream, {.elements = slice.elements,
                         .weights = slice.weights,
                         .gradients = slice.gradients,
                         .momentum_buffer = momentum_.size() > 0 ? momentum_.as<float>() + slice.state_offset : nullptr,
                         .state = state,
                         .hyper = hyper_of(slice),
                         .copy_dtype = slice.copy.dtype,
                         .copy = slice.copy.data});
}

kernels::sgd::Hyper Sgd::hyper_of(const UpdateSlice& slice) const {
  kernels::sgd::Hyper hyper = hyper_;
  if (!slice.decays) hyper.weight_decay = 0;
  return hyper;
}

std::vector<OptimizerState> Sgd::states() {
  if (momentum_.size() == 0) return {};
  return {{"momentum_buffer", momentum_.as<float>()}};
}

}  // namespace gradring::train
