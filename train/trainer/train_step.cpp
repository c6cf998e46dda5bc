// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/train_step.h"

#include "kernels/variant.h"

namespace gradring::train {

using kernels::DType;
using kernels::MemoryKind;

TrainStep::TrainStep(const StepParts& parts, const kernels::Shape& sample)
    : parts_(parts),
      advance_(kernels::pick_variant(parts.kernels.step_state, parts.device, DType::f32)),
      search_(kernels::pick_variant(parts.kernels.sum_of_squares, parts.device, DType::f32)),
      batch_(parts.device, parts.kernels, sample, parts.program.max_batch(), parts.program.dtype()),
      correct_(parts.device.allocate(sizeof(std::int32_t))),
      sum_of_squares_(parts.device.allocate(sizeof(float))),
      search_workspace_(parts.device.allocate(kernels::sum_of_squares::workspace_bytes())),
      state_(parts.device.allocate(sizeof(StepState))),
      host_state_(parts.device.allocate(sizeof(StepState), MemoryKind::pinned)),
      host_loss_(parts.device.allocate(sizeof(float), MemoryKind::pinned)) {
  const float scale = parts.loss_scaling.first();
  *host_state_.as<StepState>() = {.gradient_scale = 1 / scale, .loss_scale = scale};
  parts_.stream.enqueue_copy(state_.data(), host_state_.data(), sizeof(StepState));
}

void TrainStep::enqueue_learning_rate(double learning_rate) {
  // Everything else in the state belongs to the device.
  float& rate = host_state_.as<StepState>()->learning_rate;
  rate = static_cast<float>(learning_rate);
  parts_.stream.enqueue_copy(&state()->learning_rate, &rate, sizeof(float));
}

void TrainStep::enqueue_search() {
  if (!parts_.loss_scaling.dynamic) return;
  // Riders come last in the arena, and the loss may be infinite where no gradient is.
  search_.run(parts_.stream, {.dtype = DType::f32,
                              .x = parts_.gradients.data,
                              .elements = parts_.gradients.layout.riders().offset,
                              .sum = sum_of_squares_.as<float>(),
                              .non_finite = &state()->non_finite,
                              .workspace = search_workspace_.data()});
}

StepResult TrainStep::run(const Input& input) {
  kernels::Stream& stream = parts_.stream;
  batch_.enqueue_load(stream, input.batch);
  enqueue_learning_rate(input.learning_rate);

  parts_.program.enqueue_forward(stream, parts_.weights.view(), batch_.images(), input.batch.count(), parts_.ddp);
  float* loss_sum = parts_.gradients.riders().data();
  parts_.program.enqueue_loss(stream, {.labels = batch_.labels(),
                                       .scale = 1.0f / static_cast<float>(input.global_samples),
                                       .loss_scale = &state()->loss_scale,
                                       .loss_sum = loss_sum,
                                       .correct = correct_.as<std::int32_t>()});
  parts_.program.enqueue_backward(stream, parts_.weights.view(), parts_.gradients, parts_.ddp);
  parts_.ddp.enqueue_join();

  enqueue_search();
  parts_.optimizer.enqueue_step(stream, parts_.master, parts_.gradients, state(), parts_.weights.copy());
  stream.enqueue_copy(host_loss_.data(), loss_sum, sizeof(float));
  stream.enqueue_copy(host_state_.data(), state_.data(), sizeof(StepState));  // before it moves on to the next step
  advance_.advance(stream,
                   {.state = state(), .policy = parts_.loss_scaling.policy, .dynamic = parts_.loss_scaling.dynamic});
  stream.synchronize(input.deadline);

  const StepState& made = *host_state_.as<StepState>();
  return {.loss = static_cast<double>(*host_loss_.as<float>()) / static_cast<double>(input.global_samples),
          .loss_scale = made.loss_scale,
          .skipped = made.non_finite != 0};
}

}  // namespace gradring::train
