// SPDX-License-Identifier: Apache-2.0
#include "train/core/data_parallel/device_replica.h"

#include <chrono>
#include <cstddef>

namespace gradring::train {
namespace {

constexpr std::chrono::minutes kDrainTime{1};

std::size_t bytes_of_sample(const DeviceReplicaSpec& spec) {
  return static_cast<std::size_t>(spec.sample.elements()) * kernels::size_of(spec.dtype);
}

std::size_t weight_bytes(const DeviceReplicaSpec& spec) {
  return (spec.layout.elements() + spec.layout.frozen_elements()) * kernels::size_of(spec.dtype);
}

std::size_t gradient_bytes(const DeviceReplicaSpec& spec) { return spec.layout.elements() * sizeof(float); }

std::size_t image_bytes(const DeviceReplicaSpec& spec) {
  return static_cast<std::size_t>(spec.max_batch) * bytes_of_sample(spec);
}

/// Labels; and second labels with their weights, where a batch has them.
std::size_t label_bytes(const DeviceReplicaSpec& spec) {
  return static_cast<std::size_t>(spec.max_batch) * (2 * sizeof(std::int32_t) + sizeof(float));
}

}  // namespace

DeviceReplica::DeviceReplica(const DeviceReplicaSpec& spec, const FurtherDevice& further)
    : layout_(spec.layout),
      sample_bytes_(bytes_of_sample(spec)),
      memory_(further.device),
      program_(spec.model, spec.max_batch, nn::ProgramMode::training, further.backend,
               {memory_.on(MemoryClass::activations), memory_.on(MemoryClass::workspace)}, spec.dtype,
               spec.checkpointing),
      weight_memory_(memory_.on(MemoryClass::parameters).allocate(weight_bytes(spec))),
      gradient_memory_(memory_.on(MemoryClass::gradients).allocate(gradient_bytes(spec))),
      images_(memory_.on(MemoryClass::batches).allocate(image_bytes(spec))),
      labels_(memory_.on(MemoryClass::batches).allocate(label_bytes(spec))),
      loss_scale_(memory_.on(MemoryClass::step).allocate(sizeof(float))),
      step_(memory_.on(MemoryClass::step).allocate(sizeof(std::int32_t))),
      correct_(memory_.on(MemoryClass::step).allocate(sizeof(std::int32_t))),
      weights_(nn::weights_at(layout_, spec.dtype, weight_memory_.data())),
      gradients_{layout_, gradient_memory_.as<float>()},
      done_(further.device.make_event()),
      stream_(further.device.make_stream(kernels::StreamMode::asynchronous)) {
  if (further.begin) stream_->enqueue(further.begin);
  stream_->enqueue_zero(gradient_memory_.data(), gradient_memory_.size());  // gather copies the padding, too
}

void DeviceReplica::enqueue_forward(const kernels::Event& ready, const nn::Weights& weights,
                                    const nn::Program::Batch& batch) {
  count_ = batch.samples;
  stream_->enqueue_wait(ready);
  const std::size_t element = kernels::size_of(weights_.dtype);
  for (int bucket = 0; bucket < layout_.buckets(); ++bucket) {
    const nn::ArenaLayout::Slice& slice = layout_.bucket(bucket);
    stream_->enqueue_copy(weight_memory_.data() + slice.offset * element,
                          weights.buckets[static_cast<std::size_t>(bucket)], slice.elements * element);
  }
  if (layout_.frozen_elements() > 0)
    stream_->enqueue_copy(weight_memory_.data() + layout_.elements() * element, weights.frozen,
                          layout_.frozen_elements() * element);
  stream_->enqueue_copy(images_.data(), batch.x, static_cast<std::size_t>(count_) * sample_bytes_);
  nn::Program::Batch here = batch;
  here.x = images_.data();
  if (batch.random.step) {
    stream_->enqueue_copy(step_.data(), batch.random.step, sizeof(std::int32_t));
    here.random.step = step_.as<std::int32_t>();
  }
  program_.enqueue_forward(*stream_, weights_, here, nobody_);
}

void DeviceReplica::enqueue_backward(const nn::Program::LossTarget& target) {
  const auto count = static_cast<std::size_t>(count_);
  auto* const labels = labels_.as<std::int32_t>();
  nn::Program::LossTarget here = target;
  here.labels = labels;
  stream_->enqueue_copy(labels, target.labels, count * sizeof(std::int32_t));
  if (target.soft.labels_b) {
    auto* const weights_b = reinterpret_cast<float*>(labels + 2 * count);
    here.soft.labels_b = labels + count;
    here.soft.weights_b = weights_b;
    stream_->enqueue_copy(labels + count, target.soft.labels_b, count * sizeof(std::int32_t));
    stream_->enqueue_copy(weights_b, target.soft.weights_b, count * sizeof(float));
  }
  here.loss_sum = gradients_.piggyback().data();
  here.correct = correct_.as<std::int32_t>();
  here.arrivals = nullptr;  // that word is the first device's
  if (target.loss_scale) {
    stream_->enqueue_copy(loss_scale_.data(), target.loss_scale, sizeof(float));
    here.loss_scale = loss_scale_.as<float>();
  }
  program_.enqueue_backward(*stream_, weights_, nn::gradients_in(gradients_), here, nobody_);
  stream_->record(*done_);
}

void DeviceReplica::drain() noexcept try {
  stream_->synchronize(Deadline::after(kDrainTime));
} catch (const std::exception&) {
  // Another error is on its way to the caller, perhaps this one.
}

MemoryTable DeviceReplica::planned_memory(const DeviceReplicaSpec& spec, const nn::ProgramMemory& program) {
  MemoryTable table;
  table[MemoryClass::parameters] = weight_bytes(spec);
  table[MemoryClass::gradients] = gradient_bytes(spec);
  table[MemoryClass::batches] = image_bytes(spec) + label_bytes(spec);
  table[MemoryClass::activations] = program.activations + program.activation_gradients;
  table[MemoryClass::workspace] = program.workspace;
  table[MemoryClass::step] = sizeof(float) + 2 * sizeof(std::int32_t);
  return table;
}

}  // namespace gradring::train
