// SPDX-License-Identifier: Apache-2.0
// Compiled into the CUDA module alone, where kernel_set is nvcc's copy.
#include "kernels/cuda_module/door.h"

#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/device_count.h"

namespace gradring::kernels {
namespace {

std::unique_ptr<Device> make_device(int index) { return std::make_unique<CudaDevice>(index); }

}  // namespace
}  // namespace gradring::kernels

extern "C" __attribute__((visibility("default"))) const gradring::kernels::CudaModuleDoor* gradring_cuda_door() {
  using namespace gradring::kernels;
  static const KernelSet kernels = kernel_set();
  static const CudaModuleDoor door = {
      .kernels = &kernels, .device_count = &cuda_device_count, .make_device = &make_device};
  return &door;
}
