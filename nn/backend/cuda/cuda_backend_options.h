// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace gradring::nn {

/// Makes a choice, and returns its name.
using Chooser = std::function<std::string()>;

/// Options of the CUDA backend, without NVIDIA's headers, so that programs built without CUDA can include them.
struct CudaBackendOptions {
  std::string conv = "auto";         ///< auto (in 16 bits our fused kernel where it fits, else cuDNN), cudnn, or ours
  std::string gemm = "auto";         ///< auto (cuBLASLt), cublas, or a variant of ours
  bool reproducible = false;         ///< only deterministic algorithms
  bool autotune = false;             ///< measure some of cuDNN's engines, deterministic ones first, and use the fastest
  bool has_libraries = true;         ///< false: as if they were missing, for a simulated GPU
  std::filesystem::path plan_cache;  ///< file of measured results; empty: none
  /// Runs the chooser on one rank and returns its result on all, so that ranks do not measure at the same time and all
  /// use the same engines. Every rank calls it once per plan that has choices.
  std::function<std::string(const Chooser&)> share_choice = [](const Chooser& choose) { return choose(); };
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< receives one line per missing library
};

}  // namespace gradring::nn
