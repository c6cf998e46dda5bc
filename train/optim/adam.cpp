// SPDX-License-Identifier: Apache-2.0
#include "train/optim/adam.h"

#include "train/optim/state_arena.h"

namespace gradring::train {

Adam::Adam(const kernels::adam::Hyper& hyper, const kernels::adam::Variant& kernel, kernels::Device& device,
           const nn::ArenaLayout& layout)
    : hyper_(hyper), kernel_(kernel), m_(make_state_arena(device, layout)), v_(make_state_arena(device, layout)) {}

void Adam::enqueue_step(kernels::Stream& stream, const nn::Arena& weights, const nn::Arena& gradients,
                        const kernels::step_state::StepState* state, const RoundedCopy& copy) {
  kernel_.run(stream, {.elements = weights.layout.elements(),
                       .weights = weights.data,
                       .gradients = gradients.data,
                       .m = m_.as<float>(),
                       .v = v_.as<float>(),
                       .state = state,
                       .hyper = hyper_,
                       .copy_dtype = copy.dtype,
                       .copy = copy.data});
}

std::vector<OptimizerState> Adam::states() {
  return {{"exp_avg", m_.as<float>()}, {"exp_avg_sq", v_.as<float>()}};
}

}  // namespace gradring::train
