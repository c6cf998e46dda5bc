// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/backend/cuda/cudnn.h"
#include "tests/nn/backend/cuda/deviceless_cudnn.h"

namespace gradring::tests {

/// An engine that cuDNN offers for a graph, with whatever knobs.
struct OfferedEngine {
  std::int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;

  bool operator==(const OfferedEngine&) const = default;
};

/// The engines for a problem on a GPU, by their index; empty if cuDNN does not compute it there.
struct Offer {
  std::string gpu;      ///< "sm_90"
  std::string problem;  ///< ConvProblem::key
  std::vector<OfferedEngine> engines;

  bool operator==(const Offer&) const = default;
};

/// What one version of cuDNN offers for every pass of convnet's convolutions, in every type: cudnn_record.txt, which
/// scripts/cudnn_plans.sh --write makes. It tells FakeCudnn what the real library has, and where that is missing.
struct CudnnRecord {
  std::string version;
  std::vector<Offer> offers;

  /// The file as it was when this was built.
  ///
  /// Errors    std::runtime_error if it is damaged.
  static CudnnRecord read();
  /// Asks the real library. DevicelessCudnn::missing must be nullopt.
  static CudnnRecord ask();

  std::string text() const;
  /// The first offer for a problem of this kind: "wgrad f16 dw f32". Null if nothing was offered.
  const Offer* find(std::string_view gpu, std::string_view kind) const;
};

/// Every pass of a convolution in every type: f16 and bf16 wgrad with dw of their own type, and of f32.
std::vector<nn::ConvProblem> problems_of(const kernels::conv2d::Geometry& geometry);

/// The engines among configurations: their indices, each once, ascending.
std::vector<OfferedEngine> engines_of(const std::vector<nn::CudnnEngineConfig>& configs);

/// "nondeterministic" of CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC.
std::string_view name_of(cudnnBackendNumericalNote_t note);

}  // namespace gradring::tests
