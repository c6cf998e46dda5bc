// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/support/program_rig.h"

#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "nn/parameter/parameter.h"

namespace gradring::tests {

std::unique_ptr<nn::Backend> make_backend(const std::string& name, const kernels::Device& device) {
  if (name == "kernels") return std::make_unique<nn::KernelBackend>(kernels::kernel_set(), device);
  if (name == "reference") return std::make_unique<nn::ReferenceBackend>(device);
  return std::make_unique<nn::CpuBackend>(device);
}

namespace {

/// Values of a type in memory.
std::vector<std::byte> rounded(const std::vector<float>& values, kernels::DType dtype) {
  std::vector<std::byte> bytes(values.size() * kernels::size_of(dtype));
  kernels::cast::reference::run(
      {.from = kernels::DType::f32, .to = dtype, .x = values.data(), .y = bytes.data(), .elements = values.size()});
  return bytes;
}

}  // namespace

std::vector<float> logits_of(const nn::Program& program, std::int64_t elements) {
  std::vector<float> logits(static_cast<std::size_t>(elements));
  kernels::cast::reference::run({.from = program.dtype(),
                                 .to = kernels::DType::f32,
                                 .x = program.logits(),
                                 .y = logits.data(),
                                 .elements = logits.size()});
  return logits;
}

ProgramRig::ProgramRig(const nn::Model& model, std::int64_t max_batch, const std::string& backend, nn::ProgramMode mode,
                       kernels::DType dtype, const nn::Checkpointing& checkpointing)
    : model_(model),
      parameters_(nn::parameters_of(model)),
      layout_(parameters_, std::vector<std::vector<int>>{nn::Program::ready_order(model)}, 64),
      backend_(make_backend(backend, device_)),
      stream_(device_.make_stream(kernels::StreamMode::in_place)),
      weights_(layout_.elements()),
      gradients_(layout_.elements(), std::nanf("")),
      mode_(mode),
      program_(model, max_batch, mode, *backend_, device_, dtype, checkpointing) {}

void ProgramRig::draw_weights(std::uint64_t seed) {
  const auto drawn = nn::draw_torch_uniform(parameters_, seed);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    nn::from_torch_order(parameters_[i], drawn[i],
                         {weights_.data() + layout_.parameter(static_cast<int>(i)).offset, drawn[i].size()});
}

ProgramRig::Result ProgramRig::run(const std::vector<float>& images, const std::vector<std::int32_t>& labels,
                                   nn::StepObserver* observer) {
  const auto weight_bytes = rounded(weights_, program_.dtype());
  const auto image_bytes = rounded(images, program_.dtype());
  const nn::Weights weights = nn::weights_at(layout_, program_.dtype(), weight_bytes.data());
  const nn::Gradients gradients = nn::gradients_in({layout_, gradients_.data()});
  nn::NoObserver nobody;
  const auto batch = static_cast<std::int64_t>(labels.size());
  Result result;
  float loss_sum = 0;
  const nn::Program::LossTarget target{.labels = labels.data(),
                                       .scale = 1.0f / static_cast<float>(batch),
                                       .loss_sum = &loss_sum,
                                       .correct = &result.correct};
  program_.enqueue_forward(*stream_, weights, image_bytes.data(), batch, observer ? *observer : nobody);
  if (mode_ == nn::ProgramMode::evaluation)
    program_.enqueue_loss(*stream_, target);
  else
    program_.enqueue_backward(*stream_, weights, gradients, target, observer ? *observer : nobody);
  stream_->synchronize(Deadline::after(std::chrono::minutes(2)));
  result.loss = loss_sum / static_cast<double>(batch);
  result.logits = logits_of(program_, batch * model_.classes);
  return result;
}

void ProgramRig::run_nothing(nn::StepObserver& observer) {
  program_.enqueue_empty_batch(*stream_, nn::gradients_in({layout_, gradients_.data()}), observer);
  stream_->synchronize(Deadline::after(std::chrono::minutes(2)));
}

std::vector<float> ProgramRig::gradient(std::size_t parameter) const {
  const auto& slice = layout_.parameter(static_cast<int>(parameter));
  std::vector<float> torch(slice.elements);
  nn::to_torch_order(parameters_[parameter], {gradients_.data() + slice.offset, slice.elements}, torch);
  return torch;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace gradring::tests
