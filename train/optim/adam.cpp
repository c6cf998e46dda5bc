// SPDX-License-Identifier: Apache-2.0
#include "train/optim/adam.h"

#include "train/optim/state_arena.h"

namespace gradring::train {

Adam::Adam(const kernels::adam::Hyper& hyper, const kernels::adam::Variant& kernel, kernels::Device& device,
           std::size_t elements)
    : hyper_(hyper), kernel_(kernel), m_(make_state_arena(device, elements)), v_(make_state_arena(device, elements)) {}

void Adam::enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                        const kernels::step_state::StepState* state) {
  for (const UpdateSlice& slice : slices)
    kernel_.run(stream, {.elements = slice.elements,
                         .weights = slice.weights,
                         .gradients = slice.gradients,
                         .m = m_.as<float>() + slice.state_offset,
                         .v = v_.as<float>() + slice.state_offset,
                         .state = state,
                         .hyper = hyper_of(slice),
                         .copy_dtype = slice.copy.dtype,
                         .copy = slice.copy.data});
}

kernels::adam::Hyper Adam::hyper_of(const UpdateSlice& slice) const {
  kernels::adam::Hyper hyper = hyper_;
  if (!slice.decays) hyper.weight_decay = 0;
  return hyper;
}

std::vector<OptimizerState> Adam::states() { return {{"exp_avg", m_.as<float>()}, {"exp_avg_sq", v_.as<float>()}}; }

}  // namespace gradring::train
