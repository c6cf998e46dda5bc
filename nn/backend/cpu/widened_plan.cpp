// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/widened_plan.h"

#include <utility>

#include "nn/layers/overloaded.h"

namespace gradring::nn {
namespace {

using kernels::DType;

/// What vector loads and oneDNN ask for.
constexpr std::size_t kAlignmentBytes = 64;

/// Elements of the weight and the bias of a layer; none of a layer that is not trained.
std::vector<std::size_t> parameter_elements(const Layer& layer) {
  const auto weight_and_bias = [](std::int64_t weight, std::int64_t bias) {
    return std::vector{static_cast<std::size_t>(weight), static_cast<std::size_t>(bias)};
  };
  return std::visit(
      Overloaded{[&](const Conv2d& conv) {
                   return weight_and_bias(conv.out_channels * conv.kernel * conv.kernel * conv.in_channels,
                                          conv.out_channels);
                 },
                 [&](const Linear& fc) { return weight_and_bias(fc.out_features * fc.in_features, fc.out_features); },
                 [](const auto&) { return std::vector<std::size_t>(); }},
      layer);
}

std::size_t elements_of_sample(const Shape& shape) { return static_cast<std::size_t>(shape.elements() / shape[0]); }

}  // namespace

WidenedPlan::WidenedPlan(std::unique_ptr<Plan> inner, std::span<const NodeSpec> nodes,
                         const kernels::cast::Variant& cast)
    : inner_(std::move(inner)), dtype_(nodes.front().dtype), cast_(cast) {
  const NodeSpec& first = nodes.front();
  const NodeSpec& last = nodes[inner_->nodes() - 1];
  const std::int64_t batch = first.input[0];
  x_ = reserve(elements_of_sample(first.input), batch);
  dx_ = reserve(elements_of_sample(first.input), batch);
  y_ = reserve(elements_of_sample(last.output), batch);
  dy_ = reserve(elements_of_sample(last.output), batch);
  for (const NodeSpec& node : nodes.first(inner_->nodes()))
    for (const std::size_t elements : parameter_elements(node.layer)) parameters_.push_back(reserve(elements, 1));
}

WidenedPlan::Wide WidenedPlan::reserve(std::size_t elements, std::int64_t batch) {
  const std::size_t bytes = elements * static_cast<std::size_t>(batch) * sizeof(float);
  return {
      std::exchange(inner_offset_, inner_offset_ + (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes),
      elements};
}

float* WidenedPlan::widen(kernels::Stream& stream, const Wide& wide, std::int64_t batch, const void* from,
                          std::byte* workspace) const {
  auto* to = reinterpret_cast<float*>(workspace + wide.offset);
  cast_.run(stream, {.from = dtype_,
                     .to = DType::f32,
                     .x = from,
                     .y = to,
                     .elements = wide.elements * static_cast<std::size_t>(batch)});
  return to;
}

void WidenedPlan::round(kernels::Stream& stream, const Wide& wide, std::int64_t batch, void* to,
                        std::byte* workspace) const {
  cast_.run(stream, {.from = DType::f32,
                     .to = dtype_,
                     .x = workspace + wide.offset,
                     .y = to,
                     .elements = wide.elements * static_cast<std::size_t>(batch)});
}

std::vector<const void*> WidenedPlan::widen_parameters(kernels::Stream& stream, std::span<const void* const> parameters,
                                                       std::byte* workspace) const {
  std::vector<const void*> wide;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    wide.push_back(widen(stream, parameters_[i], 1, parameters[i], workspace));
  return wide;
}

void WidenedPlan::enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) {
  const float* x = widen(stream, x_, pass.batch, pass.x, pass.workspace);
  const auto parameters = widen_parameters(stream, pass.parameters, pass.workspace);
  inner_->enqueue_forward(stream, {.batch = pass.batch,
                                   .x = x,
                                   .y = pass.workspace + y_.offset,
                                   .parameters = parameters,
                                   .saved = pass.saved,
                                   .workspace = pass.workspace + inner_offset_});
  round(stream, y_, pass.batch, pass.y, pass.workspace);
}

void WidenedPlan::enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) {
  const float* x = widen(stream, x_, pass.batch, pass.x, pass.workspace);
  const float* y = widen(stream, y_, pass.batch, pass.y, pass.workspace);
  float* dy = widen(stream, dy_, pass.batch, pass.dy, pass.workspace);
  const auto parameters = widen_parameters(stream, pass.parameters, pass.workspace);
  inner_->enqueue_backward(stream, {.batch = pass.batch,
                                    .x = x,
                                    .y = y,
                                    .dy = dy,
                                    .dx = pass.dx ? pass.workspace + dx_.offset : nullptr,
                                    .parameters = parameters,
                                    .gradients = pass.gradients,
                                    .saved = pass.saved,
                                    .workspace = pass.workspace + inner_offset_});
  if (pass.dx) round(stream, dx_, pass.batch, pass.dx, pass.workspace);
}

}  // namespace gradring::nn
