// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn.h"

#include <algorithm>
#include <limits>

#include "nn/backend/cuda/current_device.h"
#include "nn/backend/cuda/measure.h"

namespace gradring::nn {
namespace {

constexpr std::size_t kMeasuredEngines = 8;

std::size_t bytes(std::int64_t elements, kernels::DType dtype) {
  return static_cast<std::size_t>(elements) * kernels::size_of(dtype);
}

}  // namespace

Cudnn::Cudnn(CudnnApi api, kernels::Device& device, const CudaBackendOptions& options)
    : api_(api),
      device_(device),
      reproducible_(options.reproducible),
      autotune_(options.autotune),
      share_choice_(options.share_choice),
      handle_(make_handle()),
      cache_(options.plan_cache, device.description() + "; cuDNN " + std::to_string(api_.get_version())) {}

Cudnn::Handle Cudnn::make_handle() {
  make_current(device_);
  cudnnHandle_t handle = nullptr;
  cudnn_check(api_, api_.create(&handle), "cudnnCreate");
  return Handle(handle, Destroy{&api_});
}

std::vector<CudnnEngine> Cudnn::candidates(const std::vector<CudnnEngineConfig>& configs, const CudnnEngineRules& rules,
                                           std::size_t most) {
  std::vector<CudnnEngine> engines;
  for (const CudnnEngineConfig& config : configs) {
    if (engines.size() == most) break;
    if (auto engine = make_engine(api_, handle_.get(), config, rules)) engines.push_back(std::move(*engine));
  }
  return engines;
}

std::vector<CudnnEngineConfig> Cudnn::configs_for(const ConvProblem& problem) {
  make_current(device_);
  return engine_configs(api_, make_graph(api_, handle_.get(), problem));
}

CudnnEngineRules Cudnn::rules_for(const ConvProblem& problem, std::size_t most_workspace_bytes) const {
  return {.reproducible = reproducible_,
          .exact_products = problem.dtype == kernels::DType::f32,
          .most_workspace_bytes = most_workspace_bytes};
}

std::optional<CudnnEngine> Cudnn::choose(const ConvProblem& problem, std::size_t most_workspace_bytes,
                                         const std::string& preferred) {
  std::vector<CudnnEngineConfig> configs = configs_for(problem);
  std::ranges::stable_partition(configs, [&](const auto& config) { return config.name == preferred; });
  std::vector<CudnnEngine> engines = candidates(configs, rules_for(problem, most_workspace_bytes), 1);
  if (engines.empty()) return std::nullopt;
  return std::move(engines.front());
}

std::string Cudnn::tune(const ConvProblem& problem, std::size_t most_workspace_bytes) {
  if (!autotune_) return "";
  if (const auto known = cache_.find(problem.key())) return *known;
  const std::vector<CudnnEngine> engines =
      candidates(configs_for(problem), rules_for(problem, most_workspace_bytes), kMeasuredEngines);
  if (engines.empty()) return "";
  const std::string& name = fastest(engines, problem).name;
  cache_.store(problem.key(), name);
  return name;
}

const CudnnEngine& Cudnn::fastest(const std::vector<CudnnEngine>& engines, const ConvProblem& problem) {
  const auto& geometry = problem.geometry;
  std::size_t workspace_bytes = 0;
  for (const CudnnEngine& engine : engines) workspace_bytes = std::max(workspace_bytes, engine.workspace_bytes);
  const kernels::Buffer x = device_.allocate(bytes(geometry.in_elements(), problem.dtype));
  const kernels::Buffer w = device_.allocate(bytes(geometry.weight_elements(), kernels::DType::f32));  // or half of it
  const kernels::Buffer y = device_.allocate(bytes(geometry.out_elements(), problem.dtype));
  const kernels::Buffer b = device_.allocate(bytes(geometry.out_channels, problem.dtype));
  const kernels::Buffer workspace = device_.allocate(workspace_bytes);
  const auto stream = device_.make_stream(kernels::StreamMode::asynchronous);
  for (const kernels::Buffer* buffer : {&x, &w, &y, &b}) stream->enqueue_zero(buffer->data(), buffer->size());

  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const double seconds = measure(device_.id().index, *stream, [&] {
      enqueue(*stream, engines[i],
              {{kTensorX, x.data()}, {kTensorW, w.data()}, {kTensorY, y.data()}, {kTensorB, b.data()}},
              workspace.data());
    });
    if (seconds < least) {
      least = seconds;
      best = i;
    }
  }
  return engines[best];
}

void Cudnn::enqueue(kernels::Stream& stream, const CudnnEngine& engine, std::initializer_list<CudnnPointer> tensors,
                    void* workspace) {
  make_current(device_);
  std::vector<std::int64_t> ids;
  std::vector<const void*> pointers;
  for (const CudnnPointer& tensor : tensors) {
    ids.push_back(tensor.tensor);
    pointers.push_back(tensor.data);
  }
  CudnnDescriptor pack(api_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(pointers.size()),
           pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize();
  cudnn_check(api_, api_.set_stream(handle_.get(), static_cast<cudaStream_t>(stream.native_handle())),
              "cudnnSetStream");
  cudnn_check(api_, api_.execute(handle_.get(), engine.plan.get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace gradring::nn
