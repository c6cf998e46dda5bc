// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace gradring::nn {

/// What a user may decide about the CUDA backend. Needs no header of NVIDIA's, so that a program without CUDA can ask.
struct CudaBackendOptions {
  std::string conv = "auto";  ///< auto (our fused kernel where it fits, else cuDNN), cudnn, or a variant of ours
  std::string gemm = "auto";  ///< auto (cuBLASLt), cublas, or a variant of ours
  bool reproducible = false;  ///< only algorithms that give the same bits every time
  bool autotune = false;  ///< measure a few of cuDNN's engines and take the fastest, instead of its own first choice
  std::filesystem::path plan_cache;  ///< file that remembers what was measured; empty: none does
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< hears what is missing here, a line each
};

}  // namespace gradring::nn
