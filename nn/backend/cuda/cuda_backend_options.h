// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace gradring::kernels {
class Device;
class Stream;
}  // namespace gradring::kernels

namespace gradring::nn {

/// Seconds that a call takes on a device, or the least that it can take; it enqueues on the stream. Infinite if it cannot
/// be measured.
using CallTimer = std::function<double(kernels::Device&, kernels::Stream&, const std::function<void()>& enqueue_call)>;

/// Makes a choice, and returns its name.
using Chooser = std::function<std::string()>;

/// Options of the CUDA backend, without NVIDIA's headers, so that programs built without CUDA can include them.
struct CudaBackendOptions {
  std::string conv = "auto";  ///< auto (in 16 bits our fused kernel where it fits, else cuDNN), cudnn, or ours
  std::string gemm = "auto";  ///< auto (cuBLASLt), cublas, or a variant of ours
  bool reproducible = false;  ///< only deterministic algorithms
  /// Measure some of cuDNN's engines, deterministic ones first, and for convolutions and products each library and each
  /// variant of ours that auto may choose (PlanChoice); use the fastest.
  bool autotune = false;
  bool has_libraries = true;         ///< false: as if they were missing, for a simulated GPU
  std::filesystem::path plan_cache;  ///< file of measured results; empty: none
  /// Runs the chooser on one rank and returns its result on all, so that ranks do not measure at the same time and all
  /// use the same engines. Every rank calls it once per plan that has choices.
  std::function<std::string(const Chooser&)> share_choice = [](const Chooser& choose) { return choose(); };
  /// With autotune, what computed a layer, by its name, in the run that is resumed (Plan::description); empty: unknown.
  /// It is kept where it can be. Called on the rank that chooses.
  std::function<std::string(const std::string&)> resumed_choice = [](const std::string&) { return std::string(); };
  CallTimer time_call;  ///< by which autotune ranks plans; empty: kernels::least_seconds
  std::function<void(const std::string&)> say = [](const std::string&) {
  };  ///< while the backend is made: of missing libraries
};

}  // namespace gradring::nn
