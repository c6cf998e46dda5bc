// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/train_step.h"

#include "kernels/variant.h"

namespace gradring::train {

using kernels::MemoryKind;
using kernels::step_state::StepState;

TrainStep::TrainStep(const StepParts& parts, const kernels::Shape& sample)
    : parts_(parts),
      advance_(kernels::pick_variant(parts.kernels.step_state, parts.device, kernels::DType::f32)),
      images_(parts.device.allocate(static_cast<std::size_t>(parts.program.max_batch() * sample.elements()) *
                                    sizeof(float))),
      labels_(parts.device.allocate(static_cast<std::size_t>(parts.program.max_batch()) * sizeof(std::int32_t))),
      correct_(parts.device.allocate(sizeof(std::int32_t))),
      state_(parts.device.allocate(sizeof(StepState))),
      host_state_(parts.device.allocate(sizeof(StepState), MemoryKind::pinned)),
      host_loss_(parts.device.allocate(sizeof(float), MemoryKind::pinned)) {
  *host_state_.as<StepState>() = StepState{};
  parts_.stream.enqueue_copy(state_.data(), host_state_.data(), sizeof(StepState));
}

void TrainStep::enqueue_state(double learning_rate) {
  // applied_steps belongs to the device; only the rate goes over.
  host_state_.as<StepState>()->learning_rate = static_cast<float>(learning_rate);
  parts_.stream.enqueue_copy(&state_.as<StepState>()->learning_rate, &host_state_.as<StepState>()->learning_rate,
                             sizeof(float));
}

double TrainStep::run(const Input& input) {
  kernels::Stream& stream = parts_.stream;
  const auto images = input.batch.images();
  const auto labels = input.batch.labels();
  stream.enqueue_copy(images_.data(), images.data(), images.size_bytes());
  stream.enqueue_copy(labels_.data(), labels.data(), labels.size_bytes());
  enqueue_state(input.learning_rate);

  parts_.program.enqueue_forward(stream, parts_.weights, images_.as<float>(), input.batch.count(), parts_.ddp);
  float* loss_sum = parts_.gradients.riders().data();
  parts_.program.enqueue_loss(stream, {.labels = labels_.as<std::int32_t>(),
                                       .scale = 1.0f / static_cast<float>(input.global_samples),
                                       .loss_sum = loss_sum,
                                       .correct = correct_.as<std::int32_t>()});
  parts_.program.enqueue_backward(stream, parts_.weights, parts_.gradients, parts_.ddp);
  parts_.ddp.enqueue_join();

  parts_.optimizer.enqueue_step(stream, parts_.weights, parts_.gradients, state_.as<StepState>());
  advance_.advance(stream, {.state = state_.as<StepState>()});
  stream.enqueue_copy(host_loss_.data(), loss_sum, sizeof(float));
  stream.synchronize(input.deadline);
  return static_cast<double>(*host_loss_.as<float>()) / static_cast<double>(input.global_samples);
}

}  // namespace gradring::train
