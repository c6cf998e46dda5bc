// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/plan_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/expect_close.h"
#include "tests/support/values.h"

namespace gradring::tests {
namespace {

using kernels::DType;

std::size_t count(const nn::Shape& shape) { return static_cast<std::size_t>(shape.elements()); }

nn::Shape weight_shape(const nn::Layer& layer) {
  if (const auto* conv = std::get_if<nn::Conv2d>(&layer))
    return {conv->out_channels, conv->kernel, conv->kernel, conv->in_channels / conv->groups};
  const auto& linear = std::get<nn::Linear>(layer);
  return {linear.out_features, linear.in_features};
}

}  // namespace

PlanRig::PlanRig(std::vector<nn::NodeSpec> nodes) : nodes_(std::move(nodes)) {}

PlanResult PlanRig::run(const std::vector<nn::Plan*>& plans, std::int64_t batch) {
  const nn::NodeSpec& node = nodes_.front();
  const DType dtype = node.dtype;
  const nn::Shape input = node.input.with_batch(batch), output = node.output.with_batch(batch),
                  weights = weight_shape(node.layer);
  const auto allocate = [&](std::size_t bytes) { return device_.allocate(bytes, kernels::MemoryKind::device); };
  const auto device_copy = [&](const TypedArray& array) {
    kernels::Buffer buffer = allocate(array.elements() * size_of(array.dtype()));
    std::copy_n(static_cast<const std::byte*>(array.data()), buffer.size(), buffer.data());
    return buffer;
  };
  const auto random = [&](std::size_t elements, std::uint64_t seed) {
    std::vector<double> values = random_values(elements, seed, -1.5, 1.5);
    for (double& value : values) value = std::round(value);
    return device_copy(TypedArray(dtype, values));
  };
  const auto unwritten = [&](DType type, std::size_t elements) {
    return device_copy(TypedArray::unwritten(type, elements));
  };
  const auto channels = static_cast<std::size_t>(weights[0]);
  const kernels::Buffer x = random(count(input), 1), w = random(count(weights), 2), b = random(channels, 3);
  const kernels::Buffer y = unwritten(dtype, count(output)), middle = unwritten(dtype, count(output));
  kernels::Buffer dy = random(count(output), 4), dmiddle = unwritten(dtype, count(output));
  const kernels::Buffer dx = unwritten(dtype, count(input));
  const kernels::Buffer dw = unwritten(DType::f32, count(weights)), db = unwritten(DType::f32, channels);
  std::vector<const void*> parameters = {w.data(), b.data()};
  std::vector<float*> gradients = {dw.as<float>(), db.as<float>()};
  const std::size_t tensors = nn::parameters_of(node.layer, node.input).size();  // without a bias one
  parameters.resize(tensors);
  gradients.resize(tensors);
  const auto stream = device_.make_stream(kernels::StreamMode::in_place);

  std::vector<kernels::Buffer> saved, workspaces;
  for (nn::Plan* plan : plans) {
    saved.push_back(allocate(plan->saved_bytes()));
    workspaces.push_back(allocate(plan->workspace_bytes()));
  }
  const bool two = plans.size() == 2;
  for (std::size_t i = 0; i < plans.size(); ++i)
    plans[i]->enqueue_forward(*stream, {.batch = batch,
                                        .x = i == 0 ? x.data() : middle.data(),
                                        .y = two && i == 0 ? middle.data() : y.data(),
                                        .parameters = i == 0 ? std::span(parameters) : std::span<const void* const>(),
                                        .saved = saved[i].data(),
                                        .workspace = workspaces[i].data()});
  for (std::size_t i = plans.size(); i-- > 0;)
    plans[i]->enqueue_backward(*stream, {.batch = batch,
                                         .x = i == 0 ? x.data() : middle.data(),
                                         .y = two && i == 0 ? middle.data() : y.data(),
                                         .dy = two && i == 0 ? dmiddle.data() : dy.data(),
                                         .dx = i == 0 ? dx.data() : dmiddle.data(),
                                         .parameters = i == 0 ? std::span(parameters) : std::span<const void* const>(),
                                         .gradients = i == 0 ? std::span(gradients) : std::span<float* const>(),
                                         .saved = saved[i].data(),
                                         .workspace = workspaces[i].data()});
  stream->synchronize(Deadline::after(std::chrono::minutes(1)));
  const auto values = [](const kernels::Buffer& buffer, DType type) {
    TypedArray array = TypedArray::unwritten(type, buffer.size() / size_of(type));
    std::copy_n(buffer.data(), buffer.size(), static_cast<std::byte*>(array.data()));
    return array.values();
  };
  return {values(y, dtype), values(dx, dtype), values(dw, DType::f32),
          tensors > 1 ? values(db, DType::f32) : std::vector<double>()};
}

PlanResult PlanRig::run_ours(std::int64_t batch) {
  const nn::KernelPlans ours(kernels::kernel_set(), device_);
  std::vector<std::unique_ptr<nn::Plan>> owned;
  std::vector<nn::Plan*> plans;
  for (const nn::NodeSpec& node : nodes_) plans.push_back(owned.emplace_back(ours.plan({&node, 1})).get());
  return run(plans, batch);
}

void expect_same(const PlanResult& actual, const PlanResult& expected) {
  const auto compare = [&](const std::vector<double>& a, const std::vector<double>& e, const char* what) {
    SCOPED_TRACE(what);
    expect_equal(a, e);
  };
  compare(actual.y, expected.y, "y");
  compare(actual.dx, expected.dx, "dx");
  compare(actual.dw, expected.dw, "dw");
  compare(actual.db, expected.db, "db");
}

std::vector<nn::NodeSpec> layer_nodes(const nn::Layer& layer, const nn::Shape& input, bool relu, DType dtype) {
  const nn::Shape output = nn::output_of(layer, input).shape;
  std::vector<nn::NodeSpec> nodes = {{layer, input, output, dtype}};
  if (relu) nodes.push_back({nn::Relu{}, output, output, dtype});
  return nodes;
}

}  // namespace gradring::tests
