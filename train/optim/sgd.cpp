// SPDX-License-Identifier: Apache-2.0
#include "train/optim/sgd.h"

#include "train/optim/state_arena.h"

namespace gradring::train {

Sgd::Sgd(const kernels::sgd::Hyper& hyper, const kernels::sgd::Variant& kernel, kernels::Device& device,
         const nn::ArenaLayout& layout)
    : hyper_(hyper), kernel_(kernel) {
  if (hyper.momentum != 0) momentum_ = make_state_arena(device, layout);
}

void Sgd::enqueue_step(kernels::Stream& stream, const nn::Arena& weights, const nn::Arena& gradients,
                       const kernels::step_state::StepState* state, const RoundedCopy& copy) {
  kernel_.run(stream, {.elements = weights.layout.elements(),
                       .weights = weights.data,
                       .gradients = gradients.data,
                       .momentum_buffer = momentum_.as<float>(),
                       .state = state,
                       .hyper = hyper_,
                       .copy_dtype = copy.dtype,
                       .copy = copy.data});
}

std::vector<OptimizerState> Sgd::states() {
  if (momentum_.size() == 0) return {};
  return {{"momentum_buffer", momentum_.as<float>()}};
}

}  // namespace gradring::train
