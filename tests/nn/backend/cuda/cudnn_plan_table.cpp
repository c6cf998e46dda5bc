// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/cudnn_plan_table.h"

#include <fmt/format.h>

#include "nn/backend/kernels/kernel_plans.h"
#include "tests/nn/backend/cuda/deviceless_plan.h"
#include "tests/nn/backend/cuda/model_convolutions.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr std::int64_t kBatch = 512;

constexpr const char* kHead = R"(# cuDNN's engines

For every convolution of every model, of equal ones the first: which of cuDNN's engines the CUDA
backend chooses, and how much workspace it takes. "Groups" has convolutions that no model has. No
GPU has run them: cuDNN plans for GPUs that are described to it.

**Command**  `scripts/cudnn_plans.sh --write`. **cuDNN**  {}. **Batch**  {} images of 28x28x1.

"28, 1.5 MB" is engine 28 with 1.5 MB of workspace. All of these engines are deterministic, and none
transforms (Winograd, FFT); those of f32 multiply without tensor cores, which would round to TF32. A
dash: nobody asks for the gradient of the images. The test `CudnnPlans.ObeyEngineRules` holds the
engines of these and other batches to it.
)";

std::string cell(const DevicelessCudnn::Executed& executed) {
  const auto bytes = static_cast<double>(executed.workspace_bytes);
  if (bytes == 0) return fmt::format("{}", executed.engine);
  if (bytes < 1e3) return fmt::format("{}, {} B", executed.engine, bytes);
  if (bytes < 1e6) return fmt::format("{}, {:.1f} kB", executed.engine, bytes / 1e3);
  return fmt::format("{}, {:.1f} MB", executed.engine, bytes / 1e6);
}

std::string row(std::string_view model, const std::vector<nn::NodeSpec>& nodes, DevicelessCudnn& cudnn) {
  DevicelessPlan plan(cudnn, nodes, {});
  const nn::NodeSpec& node = nodes.front();
  const std::string head =
      fmt::format("| {} {} | {}x{}x{} to {}x{}x{} | {} |", model, node.name, node.input[1], node.input[2],
                  node.input[3], node.output[1], node.output[2], node.output[3], kernels::name_of(node.dtype));
  if (!plan.made()) return head + " none | none | none |\n";
  const DevicelessPlan::Engines engines = plan.run(kBatch);
  const bool has_dgrad = engines.backward.size() > 1;
  return fmt::format("{} {} | {} | {} |\n", head, cell(engines.forward), cell(engines.backward.at(0)),
                     has_dgrad ? cell(engines.backward[1]) : "-");
}

}  // namespace

std::string cudnn_plan_document() {
  std::string text;
  for (const GpuModel& gpu : {h100(), a100()}) {
    DevicelessCudnn cudnn(gpu);
    if (text.empty()) text = fmt::format(kHead, cudnn_version_text(cudnn.api().get_version()), kBatch);
    text += fmt::format("\n## {}, {}\n\n", gpu.architecture(), gpu.name);
    text += "| convolution | shape | type | forward | wgrad | dgrad |\n|---|---|---|---|---|---|\n";
    for (const std::string_view name : models_for_cudnn())
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const auto& nodes : convolutions_of(name, kBatch, nn::ProgramMode::training, dtype))
          text += row(name, nodes, cudnn);
  }
  return text;
}

}  // namespace gradring::tests
