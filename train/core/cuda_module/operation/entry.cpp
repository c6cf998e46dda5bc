// SPDX-License-Identifier: Apache-2.0
// The entry of a module of one operation, for `gradring bench kernels`, which needs neither a backend nor a transport.
#include "kernels/runtime/cuda/cuda_device.h"
#include "train/core/cuda_module/cuda_module.h"

namespace gradring::train {
namespace {

const kernels::KernelSet& kernels_of_operation() {
  static const kernels::KernelSet kernels = kernels::kernel_set();
  return kernels;
}

std::unique_ptr<kernels::Device> make_device(int index) { return std::make_unique<kernels::CudaDevice>(index); }

std::unique_ptr<nn::Backend> make_no_backend(kernels::Device&, const nn::CudaBackendOptions&) { return nullptr; }

}  // namespace
}  // namespace gradring::train

extern "C" __attribute__((visibility("default"))) const gradring::train::CudaModule* gradring_cuda_module() {
  using namespace gradring::train;
  static const CudaModule module = {.use_clock = &gradring::RunningClock::use,
                                    .kernels = &kernels_of_operation,
                                    .device_count = &gradring::kernels::cuda_device_count,
                                    .make_device = &make_device,
                                    .make_backend = &make_no_backend};
  return &module;
}
