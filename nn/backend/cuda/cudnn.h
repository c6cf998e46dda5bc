// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/runtime/device.h"
#include "nn/backend/cuda/cuda_backend_options.h"
#include "nn/backend/cuda/cudnn_api.h"
#include "nn/backend/cuda/plan_cache.h"

namespace gradring::nn {

/// What one graph computes.
enum class ConvPass : std::uint8_t {
  forward,       ///< y = conv(x, w)
  forward_bias,  ///< y = conv(x, w) + b, rounded once
  dgrad,         ///< dx from dy, w
  wgrad,         ///< dw from x, dy
};

/// A convolution pass with everything that cuDNN's choice of an engine depends on. Sums are in f32.
struct ConvProblem {
  ConvPass pass = ConvPass::forward;
  kernels::conv2d::Geometry geometry;
  kernels::DType dtype = kernels::DType::f32;     ///< of x, w, b, y and their gradients
  kernels::DType dw_dtype = kernels::DType::f32;  ///< of dw, in wgrad

  /// "wgrad f16 dw f32 x 64 28 28 1 w 32 3 3 stride 1 padding 0": equal for equal problems; the key in the plan cache.
  std::string key() const;
};

/// Tensor ids in a graph: x or dx, w or dw, y or dy, b.
enum ConvTensor : std::int64_t { kTensorX = 1, kTensorW, kTensorY, kTensorB };

/// The tensors of a pass's graph: executing it takes exactly these.
std::vector<ConvTensor> tensors_of(ConvPass pass);

/// Guaranteed alignment of pointers in bytes; arenas and buffers have more.
inline constexpr std::int64_t kCudnnAlignment = 16;

/// Of a tensor, in cuDNN's order NCHW or OIHW.
using CudnnExtents = std::array<std::int64_t, 4>;

struct CudnnTensorSpec {
  std::int64_t id = 0;
  CudnnExtents extents{};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;  ///< an intermediate result of the graph, without memory of its own
};

/// Errors    InvalidArgument if cuDNN computes with no such type.
cudnnDataType_t cudnn_type(kernels::DType dtype);

/// A finalized tensor of a graph, channels innermost.
CudnnDescriptor make_tensor(const CudnnApi& api, const CudnnTensorSpec& spec);

/// The finalized operation y = x + b in f32; b is broadcast.
CudnnDescriptor make_pointwise_add(const CudnnApi& api, const CudnnDescriptor& x, const CudnnDescriptor& b,
                                   const CudnnDescriptor& y);

/// A finalized graph of operations. Without a handle cuDNN checks it, but engines cannot be chosen for it.
///
/// Errors    DeviceError if cuDNN does not support it.
CudnnDescriptor make_graph(const CudnnApi& api, cudnnHandle_t handle, std::span<const CudnnDescriptor> operations);

/// The graph of a problem: memory in NHWC and OHWI.
///
/// Errors    DeviceError if cuDNN does not support the convolution.
CudnnDescriptor make_graph(const CudnnApi& api, cudnnHandle_t handle, const ConvProblem& problem);

/// A cuDNN engine with its knobs set: one way to compute a graph, not yet compiled.
struct CudnnEngineConfig {
  CudnnDescriptor descriptor;
  std::string name;  ///< "engine 12 knobs 2=1 3=0": equal for equal configurations of one version of cuDNN
  std::vector<cudnnBackendNumericalNote_t> notes;

  bool has(cudnnBackendNumericalNote_t note) const { return std::ranges::find(notes, note) != notes.end(); }
};

/// Requirements on an engine, besides the error bounds of kernels/ops/conv2d: sums in f32, of the products themselves
/// (neither Winograd's transform nor Fourier's).
struct CudnnEngineRules {
  bool reproducible = false;
  bool exact_products = false;  ///< f32 factors are not rounded to TF32
  std::size_t most_workspace_bytes = 0;
};

/// A compiled engine.
struct CudnnEngine {
  CudnnDescriptor plan;
  std::string name;
  std::size_t workspace_bytes = 0;
};

/// The configurations for a graph: the deterministic ones, then the others, each in cuDNN's order of preference, which
/// is heuristics A and B, then the fallback. May be empty.
std::vector<CudnnEngineConfig> engine_configs(const CudnnApi& api, const CudnnDescriptor& graph);

/// Compiles a configuration; nullopt if it breaks the rules or cuDNN cannot compile it.
std::optional<CudnnEngine> make_engine(const CudnnApi& api, cudnnHandle_t handle, const CudnnEngineConfig& config,
                                       const CudnnEngineRules& rules);

/// More workspace brings no speed at the sizes of ConvNets.
inline constexpr std::size_t kMostCudnnWorkspaceBytes = std::size_t{256} << 20;

/// A tensor of a graph and its memory.
struct CudnnPointer {
  std::int64_t tensor = 0;
  const void* data = nullptr;
};

/// cuDNN on one device: chooses engines, and runs them. Shared by the plans of a backend.
///
/// Threads   one at a time: cuDNN's handle belongs to one stream at a time.
class Cudnn {
 public:
  /// Errors    DeviceError if cuDNN does not start on this device.
  Cudnn(CudnnApi api, kernels::Device& device, const CudaBackendOptions& options);

  /// The engine for a problem: the one named `preferred` if it compiles, else the first of engine_configs that does;
  /// nullopt if none does.
  std::optional<CudnnEngine> choose(const ConvProblem& problem, std::size_t most_workspace_bytes,
                                    const std::string& preferred);

  bool autotunes() const { return autotune_; }
  /// With autotune, the name of the fastest engine, from the cache or measured now; else, or if there is none, empty.
  std::string tune(const ConvProblem& problem, std::size_t most_workspace_bytes);
  /// The result of `choose` on the rank that chooses for all (CudaBackendOptions::share_choice).
  std::string share(const Chooser& choose) const { return share_choice_(choose); }

  /// Errors    DeviceError if it cannot be enqueued.
  void enqueue(kernels::Stream& stream, const CudnnEngine& engine, const std::vector<CudnnPointer>& tensors,
               void* workspace);

 private:
  /// The first `most` that compile.
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
  LibraryHandle<cudnnHandle_t> handle_;
  PlanCache cache_;
};

}  // namespace gradring::nn
