// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>
#include "train/doctor/doctor.h"

namespace gradring::train::doctor {

struct NvidiaDriver {
  int cuda_version = 0;  ///< the newest that it can run; 13000 is 13.0
  int devices = 0;
  std::string problem;  ///< the driver's message if it does not start
};

/// Queries libcuda.so.1, the driver's library, opened at run time. nullopt: not found.
std::optional<NvidiaDriver> find_nvidia_driver();

/// cuDNN, cuBLAS and NCCL, as the CUDA module would open them: path, version, and the effect of their absence. Gives no
/// advice without a GPU.
std::vector<Finding> nvidia_libraries(bool gpu_is_there);

}  // namespace gradring::train::doctor
