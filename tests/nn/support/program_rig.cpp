// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/support/program_rig.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

#include "kernels/ops/elementwise/elementwise.h"
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "tests/support/partial_sums.h"

namespace gradring::tests {

std::unique_ptr<nn::Backend> make_backend(const std::string& name, const kernels::Device& device) {
  if (name == "kernels") return std::make_unique<nn::KernelBackend>(kernels::kernel_set(), device);
  if (name == "reference") return std::make_unique<nn::ReferenceBackend>(device);
  return std::make_unique<nn::CpuBackend>(device);
}

nn::Model residual_model() {
  const auto conv = [](std::int64_t from, std::int64_t to, std::int64_t stride) {
    return nn::Conv2d{.in_channels = from, .out_channels = to, .kernel = 3, .stride = stride, .padding = 1};
  };
  nn::Model model{.name = "residual", .sample = {8, 8, 2}, .classes = 3, .layers = {}};
  model.layers = {{"pre", conv(2, 2, 1)},
                  {"sum0", nn::Add{}, {"pre", "input"}},
                  {"conv0", conv(2, 4, 1)},
                  {"relu0", nn::Relu{}},
                  {"conv1", conv(4, 4, 1)},
                  {"relu1", nn::Relu{}},
                  {"conv2", conv(4, 4, 1)},
                  {"sum2", nn::Add{}, {"conv2", "relu0"}},
                  {"relu2", nn::Relu{}},
                  {"down", nn::Conv2d{.in_channels = 4, .out_channels = 6, .kernel = 1, .stride = 2}},
                  {"conv3", conv(4, 6, 2), {"relu2"}},
                  {"relu3", nn::Relu{}},
                  {"conv4", conv(6, 6, 1)},
                  {"sum4", nn::Add{}, {"conv4", "down"}},
                  {"relu4", nn::Relu{}},
                  {"sum5", nn::Add{}, {"relu4", "sum4"}},
                  {"twice", nn::Add{}, {"sum5", "sum5"}},
                  {"flatten", nn::Flatten{}},
                  {"fc", nn::Linear{.in_features = 6 * 4 * 4, .out_features = 3}}};
  return model;
}

nn::Model batch_norm_model() {
  const auto conv = [](std::int64_t from, std::int64_t to, std::int64_t stride) {
    return nn::Conv2d{
        .in_channels = from, .out_channels = to, .kernel = 3, .stride = stride, .padding = 1, .bias = false};
  };
  const auto norm = [](std::int64_t channels) { return nn::BatchNorm2d{.channels = channels}; };
  nn::Model model{.name = "batch-norm", .sample = {8, 8, 2}, .classes = 3, .layers = {}};
  model.layers = {{"conv0", conv(2, 5, 1)},
                  {"bn0", norm(5)},
                  {"relu0", nn::Relu{}},
                  {"conv1", conv(5, 8, 2)},
                  {"bn1", nn::BatchNorm2d{.channels = 8, .eps = 1e-3f, .momentum = 0.4f}},
                  {"relu1", nn::Relu{}},
                  {"conv2", conv(8, 8, 1)},
                  {"bn2", norm(8)},
                  {"down", conv(5, 8, 2), {"relu0"}},
                  {"bn3", norm(8)},
                  {"sum", nn::Add{}, {"bn2", "bn3"}},
                  {"relu2", nn::Relu{}},
                  {"conv3", conv(8, 8, 1)},
                  {"bn4", norm(8)},
                  {"sum4", nn::Add{}, {"bn4", "relu2"}},
                  {"flatten", nn::Flatten{}},
                  {"fc", nn::Linear{.in_features = 8 * 4 * 4, .out_features = 3}}};
  return model;
}

nn::Model dropout_model() {
  nn::Model model{.name = "dropout", .sample = {7, 7, 2}, .classes = 3, .layers = {}};
  model.layers = {{"conv0", nn::Conv2d{.in_channels = 2, .out_channels = 3, .kernel = 3, .padding = 1}},
                  {"relu0", nn::Relu{}},
                  {"drop0", nn::Dropout{.p = 0.25}},
                  {"conv1", nn::Conv2d{.in_channels = 3, .out_channels = 3, .kernel = 3, .padding = 1}},
                  {"sum", nn::Add{}, {"conv1", "relu0"}},
                  {"relu1", nn::Relu{}},
                  {"flatten", nn::Flatten{}},
                  {"drop1", nn::Dropout{.p = 0.5}},
                  {"fc", nn::Linear{.in_features = 3 * 7 * 7, .out_features = 3}}};
  return model;
}

RigDevice on_host(const std::string& backend) {
  auto device = std::make_unique<kernels::HostDevice>();
  auto made = make_backend(backend, *device);
  return {std::move(device), std::move(made)};
}

namespace {

/// Values of a type in memory.
std::vector<std::byte> rounded(const std::vector<float>& values, kernels::DType dtype) {
  std::vector<std::byte> bytes(values.size() * kernels::size_of(dtype));
  kernels::cast::reference_run(
      {.from = kernels::DType::f32, .to = dtype, .x = values.data(), .y = bytes.data(), .elements = values.size()});
  return bytes;
}

std::vector<float> widened(const void* values, kernels::DType dtype, std::size_t elements) {
  std::vector<float> wide(elements);
  kernels::cast::reference_run(
      {.from = dtype, .to = kernels::DType::f32, .x = values, .y = wide.data(), .elements = elements});
  return wide;
}

constexpr std::chrono::minutes kPatience(2);

}  // namespace

std::vector<float> logits_of(const nn::Program& program, std::int64_t elements) {
  return widened(program.logits(), program.dtype(), static_cast<std::size_t>(elements));
}

ProgramRig::ProgramRig(const nn::Model& model, std::int64_t max_batch, RigDevice on, nn::ProgramMode mode,
                       kernels::DType dtype, const nn::Checkpointing& checkpointing, std::size_t most_partial_sum_bytes)
    : model_(model),
      parameters_(nn::parameters_of(model)),
      layout_(parameters_, std::vector<std::vector<int>>{nn::Program::ready_order(model)}, 64),
      on_(std::move(on)),
      stream_(on_.device->make_stream(kernels::StreamMode::in_place)),
      weights_(layout_.elements() + layout_.frozen_elements()),
      buffer_layout_(nn::Program::buffer_layout(model)),
      buffers_(on_.device->allocate(buffer_layout_.elements() * sizeof(float))),
      mode_(mode),
      program_(model, max_batch, mode, *on_.backend, *on_.device, dtype, checkpointing, nullptr,
               most_partial_sum_bytes) {
  const std::vector<float> unwritten(layout_.elements(), std::nanf(""));
  gradients_ = on_device(unwritten.data(), unwritten.size() * sizeof(float));
  std::vector<std::vector<float>> initial;
  for (const nn::Parameter& buffer : nn::buffers_of(model))
    initial.emplace_back(static_cast<std::size_t>(buffer.shape.elements()), buffer.constant);
  set_buffers(initial);
  stream_->synchronize(Deadline::after(kPatience));
}

ProgramRig::ProgramRig(const nn::Model& model, std::int64_t max_batch, const std::string& backend, nn::ProgramMode mode,
                       kernels::DType dtype, const nn::Checkpointing& checkpointing)
    : ProgramRig(model, max_batch, on_host(backend), mode, dtype, checkpointing) {}

kernels::Buffer ProgramRig::on_device(const void* data, std::size_t bytes) {
  kernels::Buffer buffer = on_.device->allocate(bytes);
  if (bytes > 0) stream_->enqueue_copy(buffer.data(), data, bytes);
  return buffer;
}

void ProgramRig::copy_to_host(void* data, const void* from, std::size_t bytes) const {
  stream_->enqueue_copy(data, from, bytes);
  stream_->synchronize(Deadline::after(kPatience));
}

void ProgramRig::draw_weights(std::uint64_t seed) {
  const auto drawn = nn::draw_torch_uniform(parameters_, seed);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    nn::from_torch_order(parameters_[i], drawn[i],
                         {nn::weights_arena(layout_, weights_.data()).parameter(static_cast<int>(i)), drawn[i].size()});
}

ProgramRig::Result ProgramRig::run(const std::vector<float>& images, const std::vector<std::int32_t>& labels,
                                   nn::StepObserver* observer) {
  const auto batch = static_cast<std::int64_t>(labels.size());
  const auto weight_bytes = rounded(weights_, program_.dtype());
  const kernels::DType image_dtype = keeps_f32_ ? kernels::DType::f32 : program_.dtype();
  const auto image_bytes = rounded(images, image_dtype);
  const kernels::Buffer weights_there = on_device(weight_bytes.data(), weight_bytes.size());
  const kernels::Buffer images_there = on_device(image_bytes.data(), image_bytes.size());
  const kernels::Buffer labels_there = on_device(labels.data(), labels.size() * sizeof(std::int32_t));
  const kernels::Buffer labels_b = on_device(soft_.labels_b.data(), soft_.labels_b.size() * sizeof(std::int32_t));
  const kernels::Buffer weights_b = on_device(soft_.weights_b.data(), soft_.weights_b.size() * sizeof(float));
  const kernels::Buffer loss_sum = on_.device->allocate(sizeof(float));
  const kernels::Buffer correct = on_.device->allocate(sizeof(std::int32_t));
  nn::Weights weights = nn::weights_at(layout_, program_.dtype(), weights_there.data());
  weights.buffers = buffers_.as<float>();
  nn::NoObserver nobody;
  nn::SoftLabels there{.label_smoothing = soft_.label_smoothing};
  if (!soft_.labels_b.empty()) {
    there.labels_b = labels_b.as<std::int32_t>();
    there.weights_b = weights_b.as<float>();
  }
  const nn::Program::LossTarget target{.labels = labels_there.as<std::int32_t>(),
                                       .soft = there,
                                       .scale = 1.0f / static_cast<float>(batch),
                                       .loss_sum = loss_sum.as<float>(),
                                       .correct = correct.as<std::int32_t>()};
  program_.enqueue_forward(*stream_, weights,
                           {.x = images_there.data(), .samples = batch, .random = random_, .x_dtype = image_dtype},
                           observer ? *observer : nobody);
  nn::Gradients into = gradients();
  into.partial_sums = &partial_sums_;
  partial_sums_.clear();
  if (mode_ == nn::ProgramMode::evaluation)
    program_.enqueue_loss(*stream_, target);
  else
    program_.enqueue_backward(*stream_, weights, into, target, observer ? *observer : nobody);
  Result result;
  float sum = 0;
  std::vector<std::byte> logits(static_cast<std::size_t>(batch * model_.classes) * kernels::size_of(program_.dtype()));
  copy_to_host(&sum, loss_sum.data(), sizeof sum);
  copy_to_host(&result.correct, correct.data(), sizeof result.correct);
  copy_to_host(logits.data(), program_.logits(), logits.size());
  add_up(partial_sums_);
  result.loss = sum / static_cast<double>(batch);
  result.logits = widened(logits.data(), program_.dtype(), static_cast<std::size_t>(batch * model_.classes));
  return result;
}

void ProgramRig::set_random(const nn::RandomKey& random, std::int32_t step) {
  step_ = on_device(&step, sizeof step);
  stream_->synchronize(Deadline::after(kPatience));
  random_ = random;
  random_.step = step_.as<std::int32_t>();
}

void ProgramRig::run_nothing(nn::StepObserver& observer) {
  nn::Weights weights = nn::weights_at(layout_, program_.dtype(), weights_.data());
  weights.buffers = buffers_.as<float>();
  program_.enqueue_empty_batch(*stream_, weights, gradients(), observer);
  stream_->synchronize(Deadline::after(kPatience));
}

std::vector<float> ProgramRig::gradient(std::size_t parameter) const {
  const auto& slice = layout_.parameter(static_cast<int>(parameter));
  std::vector<float> ours(slice.elements), torch(slice.elements);
  copy_to_host(ours.data(), gradients_.as<float>() + slice.offset, slice.elements * sizeof(float));
  nn::to_torch_order(parameters_[parameter], ours, torch);
  return torch;
}

std::vector<std::vector<float>> ProgramRig::buffers() const {
  std::vector<std::vector<float>> all;
  for (int i = 0; i < buffer_layout_.parameters(); ++i) {
    const auto& slice = buffer_layout_.parameter(i);
    copy_to_host(all.emplace_back(slice.elements).data(), buffers_.as<float>() + slice.offset,
                 slice.elements * sizeof(float));
  }
  return all;
}

void ProgramRig::set_buffers(const std::vector<std::vector<float>>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    stream_->enqueue_copy(buffers_.as<float>() + buffer_layout_.parameter(static_cast<int>(i)).offset, values[i].data(),
                          values[i].size() * sizeof(float));
  stream_->synchronize(Deadline::after(kPatience));
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
