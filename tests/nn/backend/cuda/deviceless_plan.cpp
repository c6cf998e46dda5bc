// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/deviceless_plan.h"

#include "nn/backend/cuda/cudnn.h"

namespace gradring::tests {
namespace {

/// Kernels that do nothing.
nn::HelperKernels idle_helpers() {
  using namespace kernels;
  nn::HelperKernels helpers{};
  helpers.bias.add = [](Stream&, const bias::AddArgs&) {};
  helpers.bias.grad = [](Stream&, const bias::GradArgs&) {};
  helpers.relu.forward = [](Stream&, const relu::ForwardArgs&) {};
  helpers.relu.backward = [](Stream&, const relu::BackwardArgs&) {};
  helpers.cast.run = [](Stream&, const cast::Args&) {};
  return helpers;
}

}  // namespace

DevicelessPlan::DevicelessPlan(DevicelessCudnn& cudnn, const std::vector<nn::NodeSpec>& nodes,
                               const nn::CudaBackendOptions& options)
    : cudnn_(cudnn),
      backward_(nodes.front().backward),
      plan_(nn::plan_cudnn_conv2d(nodes, std::make_shared<nn::Cudnn>(cudnn.api(), device_, options), idle_helpers())) {}

DevicelessPlan::Engines DevicelessPlan::run(std::int64_t batch) {
  const auto stream = device_.make_stream(kernels::StreamMode::in_place);
  alignas(256) std::byte memory[256];  // addresses, never read or written
  const std::vector<const void*> parameters = {memory, memory};
  const std::vector<float*> gradients(2, reinterpret_cast<float*>(memory));
  Engines engines;
  cudnn_.executed.clear();
  plan_->enqueue_forward(*stream,
                         {.batch = batch, .x = memory, .y = memory, .parameters = parameters, .workspace = memory});
  engines.forward = cudnn_.executed.at(0);
  cudnn_.executed.clear();
  if (backward_ != nn::Backward::none)
    plan_->enqueue_backward(*stream, {.batch = batch,
                                      .x = memory,
                                      .y = memory,
                                      .dy = memory,
                                      .dx = backward_ == nn::Backward::all ? memory : nullptr,
                                      .parameters = parameters,
                                      .gradients = gradients,
                                      .workspace = memory});
  engines.backward = cudnn_.executed;
  return engines;
}

std::vector<DevicelessCudnn::Executed> DevicelessPlan::Engines::all() const {
  std::vector<DevicelessCudnn::Executed> engines = {forward};
  engines.insert(engines.end(), backward.begin(), backward.end());
  return engines;
}

}  // namespace gradring::tests
