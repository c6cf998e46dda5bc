// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace gradring::nn {

/// Makes a choice, and returns its name.
using Chooser = std::function<std::string()>;

/// What a user may decide about the CUDA backend. Needs no header of NVIDIA's, so that a program without CUDA can ask.
struct CudaBackendOptions {
  std::string conv = "auto";  ///< auto (our fused kernel where it fits, else cuDNN), cudnn, or a variant of ours
  std::string gemm = "auto";  ///< auto (cuBLASLt), cublas, or a variant of ours
  bool reproducible = false;  ///< only algorithms that give the same bits every time
  bool autotune = false;  ///< measure a few of cuDNN's engines and take the fastest, instead of its own first choice
  std::filesystem::path plan_cache;  ///< file that remembers what was measured; empty: none does
  /// Lets one rank choose, so that no two measure at once on one machine and all compute alike: runs the chooser there, and
  /// returns its name everywhere. Called once for each plan that has choices, so by all ranks alike.
  std::function<std::string(const Chooser&)> share_choice = [](const Chooser& choose) { return choose(); };
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< hears what is missing here, a line each
};

}  // namespace gradring::nn
