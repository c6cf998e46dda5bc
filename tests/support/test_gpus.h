// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "train/core/cuda_module/cuda_module.h"

namespace gradring::tests {

/// Where a test's modules are, as gradring_test_gpus (scripts/cmake) defines them; empty in a build without CUDA.
struct GpuModules {
  std::string real;       ///< GRADRING_CUDA_MODULE
  std::string simulated;  ///< GRADRING_SIMULATED_GPU_MODULE
};

/// The GPUs that tests run on: what the environment variable GRADRING_TEST_GPU names, `real`, or a card that is
/// simulated, such as `h100`. Without it the real ones, where there are some, else simulated ones.
struct TestGpus {
  const train::CudaModule* module = nullptr;               ///< null: there are none, and `why_not` says why
  const simulated_gpu::SimulatedGpu* simulator = nullptr;  ///< null: the GPUs are real
  std::string why_not{};

  /// A device, which a test skips without. A GPU that is there and does not open is an error.
  std::unique_ptr<kernels::Device> make_device() const { return module ? module->make_device(0) : nullptr; }
};

/// Errors    DeviceError, InvalidArgument: the variable names GPUs that cannot be.
TestGpus open_test_gpus(const GpuModules& modules);

}  // namespace gradring::tests
