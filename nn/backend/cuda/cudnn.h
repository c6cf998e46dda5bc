// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>

#include "kernels/runtime/device.h"
#include "nn/backend/cuda/cuda_backend_options.h"
#include "nn/backend/cuda/cudnn_convolution.h"
#include "nn/backend/cuda/cudnn_engine.h"
#include "nn/backend/cuda/plan_cache.h"

namespace gradring::nn {

/// More than that buys no speed at the sizes of ConvNets, and is missed elsewhere.
inline constexpr std::size_t kMostCudnnWorkspaceBytes = std::size_t{256} << 20;

/// One tensor of a graph and where it lies.
struct CudnnPointer {
  std::int64_t tensor = 0;
  const void* data = nullptr;
};

/// cuDNN on one device: chooses engines, and runs them. Shared by the plans of a backend.
///
/// Threads   one at a time: cuDNN's handle belongs to one stream at a time.
class Cudnn {
 public:
  /// Errors    CudnnError if cuDNN does not start on this device.
  Cudnn(CudnnApi api, kernels::Device& device, const CudaBackendOptions& options);

  /// The engine for a problem: that of the name `preferred`, if it can be compiled, else the first of cuDNN's own order that
  /// can. Nothing if there is none.
  std::optional<CudnnEngine> choose(const ConvProblem& problem, std::size_t most_workspace_bytes,
                                    const std::string& preferred);

  bool autotunes() const { return autotune_; }
  /// With autotune, the name of the engine that was measured fastest before, or is now; else, or if there is none, nothing.
  std::string tune(const ConvProblem& problem, std::size_t most_workspace_bytes);
  /// What `choose` says on the rank that chooses for all (CudaBackendOptions::share_choice).
  std::string share(const Chooser& choose) const { return share_choice_(choose); }

  /// Errors    CudnnError if it cannot be enqueued.
  void enqueue(kernels::Stream& stream, const CudnnEngine& engine, std::initializer_list<CudnnPointer> tensors,
               void* workspace);

  const CudnnApi& api() const { return api_; }

 private:
  struct Destroy {
    const CudnnApi* api;
    void operator()(cudnnHandle_t handle) const noexcept { (void)api->destroy(handle); }
  };
  using Handle = std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Destroy>;

  Handle make_handle();
  /// The first that can be compiled, at most `most` of them.
  std::vector<CudnnEngine> candidates(const std::vector<CudnnEngineConfig>& configs, const CudnnEngineRules& rules,
                                      std::size_t most);
  std::vector<CudnnEngineConfig> configs_for(const ConvProblem& problem);
  CudnnEngineRules rules_for(const ConvProblem& problem, std::size_t most_workspace_bytes) const;
  const CudnnEngine& fastest(const std::vector<CudnnEngine>& engines, const ConvProblem& problem);

  CudnnApi api_;
  kernels::Device& device_;
  bool reproducible_;
  bool autotune_;
  std::function<std::string(const Chooser&)> share_choice_;
  Handle handle_;
  PlanCache cache_;
};

}  // namespace gradring::nn
