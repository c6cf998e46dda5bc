// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_error.h"

#include <string>

#include "kernels/base/error.h"

namespace gradring::kernels {

void cuda_check(cudaError_t result, std::string_view call, std::source_location where) {
  if (result == cudaSuccess) [[likely]]
    return;
  (void)cudaGetLastError();
  check<DeviceError>(
      false,
      [&] { return std::string(call) + " failed: " + cudaGetErrorName(result) + ", " + cudaGetErrorString(result); },
      where);
}

void make_current(int index, std::source_location where) {
  int current = -1;
  cuda_check(cudaGetDevice(&current), "cudaGetDevice", where);
  if (current != index) cuda_check(cudaSetDevice(index), "cudaSetDevice", where);
}

bool try_make_current(int index) noexcept {
  int current = -1;
  if (cudaGetDevice(&current) != cudaSuccess) return false;
  return current == index || cudaSetDevice(index) == cudaSuccess;
}

std::string gibibytes(std::size_t bytes) {
  constexpr std::size_t kGibibyte = std::size_t{1} << 30;
  const std::size_t tenths = bytes / kGibibyte * 10 + (bytes % kGibibyte * 10 + kGibibyte / 2) / kGibibyte;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

std::string out_of_memory(const std::string& device, std::size_t asked, std::size_t free, std::size_t total) {
  const std::string what = asked > free ? gibibytes(asked - free) + " are missing" : "but not in one piece";
  return device + " has no " + std::to_string(asked) + " bytes (" + gibibytes(asked) + ") left: " + gibibytes(free) +
         " of its " + gibibytes(total) + " are free, " + what +
         "; lower the batch size, or end other programs on this GPU (nvidia-smi lists them)";
}

}  // namespace gradring::kernels
