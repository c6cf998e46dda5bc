// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace gradring::kernels {

/// How many CUDA devices this process sees; 0 also where there is no driver, or too old a one.
int cuda_device_count();

/// What cudaGetDeviceCount answered, and what stands behind it.
struct DeviceCount {
  cudaError_t result = cudaSuccess;
  int devices = 0;
  int driver_version =
      0;  ///< the CUDA that the driver supports, as cudaDriverGetVersion has it: 12040 is 12.4; 0 if none
  int runtime_version = 0;  ///< the CUDA that this program was built with, written likewise
};
DeviceCount count_devices();

/// Why there is no device `index` by this count, and what to do about it. Empty if there is one.
std::string why_no_device(const DeviceCount& count, int index);

}  // namespace gradring::kernels
