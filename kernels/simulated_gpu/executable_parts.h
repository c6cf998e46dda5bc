// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

struct Executable::Parts {
  Program program;
};

}  // namespace gradring::simulated_gpu
