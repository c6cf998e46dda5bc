// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"

extern "C" __attribute__((visibility("default"))) const gradring::simulated_gpu::SimulatedGpu*
gradring_simulated_gpu() {
  using namespace gradring::simulated_gpu;
  static const SimulatedGpu simulated_gpu = {
      .configure = &configure,
      .faults = [] { return runtime().faults.all(); },
      .launch_host_function =
          [](void* stream, void (*function)(void*), void* argument) {
            return static_cast<int>(cudaLaunchHostFunc(static_cast<cudaStream_t>(stream), function, argument));
          },
      .note_written =
          [](const void* data, std::size_t bytes) {
            runtime().memory.mark_written(reinterpret_cast<std::uintptr_t>(data), bytes);
          }};
  return &simulated_gpu;
}
