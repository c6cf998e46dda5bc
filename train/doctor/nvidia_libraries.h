// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "train/doctor/finding.h"

namespace gradring::train::doctor {

/// cuDNN, cuBLAS and NCCL, as the CUDA module would open them: where they are, their versions, and what is lost without them.
/// Where there is no GPU, nothing is: then no advice is given.
std::vector<Finding> nvidia_libraries(bool gpu_is_there);

}  // namespace gradring::train::doctor
