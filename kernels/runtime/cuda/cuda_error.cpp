// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_error.h"

#include <string>

#include "kernels/runtime/error.h"

namespace gradring::kernels {

void cuda_check(cudaError_t result, std::string_view call, std::source_location where) {
  if (result == cudaSuccess) [[likely]]
    return;
  (void)cudaGetLastError();
  check<DeviceError>(
      false, std::string(call) + " failed: " + cudaGetErrorName(result) + ", " + cudaGetErrorString(result), where);
}

void make_current(int index, std::source_location where) {
  int current = -1;
  cuda_check(cudaGetDevice(&current), "cudaGetDevice", where);
  if (current != index) cuda_check(cudaSetDevice(index), "cudaSetDevice", where);
}

}  // namespace gradring::kernels
