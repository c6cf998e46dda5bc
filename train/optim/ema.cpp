// SPDX-License-Identifier: Apache-2.0
#include "train/optim/ema.h"

#include <utility>

#include "train/optim/state_arena.h"

namespace gradring::train {

Ema::Ema(std::unique_ptr<Optimizer> inner, double decay, const kernels::ema::Variant& kernel, kernels::Device& device,
         std::size_t elements)
    : inner_(std::move(inner)), decay_(decay), kernel_(kernel), average_(make_state_arena(device, elements)) {}

void Ema::enqueue_begin(kernels::Stream& stream, std::span<const UpdateSlice> slices) {
  inner_->enqueue_begin(stream, slices);
  for (const UpdateSlice& slice : slices)
    stream.enqueue_copy(average_.as<float>() + slice.state_offset, slice.weights, slice.elements * sizeof(float));
}

void Ema::enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                       const kernels::step_state::StepState* state) {
  inner_->enqueue_step(stream, slices, state);
  for (const UpdateSlice& slice : slices)
    kernel_.run(stream, {.elements = slice.elements,
                         .weights = slice.weights,
                         .average = average_.as<float>() + slice.state_offset,
                         .state = state,
                         .decay = decay_});
}

std::vector<OptimizerState> Ema::states() {
  std::vector<OptimizerState> states = inner_->states();
  states.push_back({std::string(kEmaState), average_.as<float>()});
  return states;
}

}  // namespace gradring::train
