// SPDX-License-Identifier: Apache-2.0
// The entry of the CUDA module, compiled into it alone: there kernel_set is nvcc's copy.
#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/cupti_trace.h"
#include "kernels/runtime/cuda/nvtx_ranges.h"
#include "nn/backend/cuda/cuda_backend.h"
#include "nn/backend/cuda/cuda_peers.h"
#include "train/core/cuda_module/cuda_module.h"
#include "train/core/cuda_module/nccl_transport.h"

namespace gradring::train {
namespace {

const kernels::KernelSet& all_kernels() {
  static const kernels::KernelSet kernels = kernels::kernel_set();
  return kernels;
}

std::unique_ptr<kernels::Device> make_device(int index) { return std::make_unique<kernels::CudaDevice>(index); }

std::unique_ptr<nn::Backend> make_backend(kernels::Device& device, const nn::CudaBackendOptions& options) {
  return std::make_unique<nn::CudaBackend>(all_kernels(), device, options);
}

std::unique_ptr<kernels::PeerMaker> make_peers(kernels::Device& device, const nn::CudaBackendOptions& options) {
  return nn::CudaPeers::open(all_kernels(), device, options);
}

std::unique_ptr<kernels::DeviceTrace> make_device_trace() { return kernels::make_cupti_trace(); }

}  // namespace
}  // namespace gradring::train

extern "C" __attribute__((visibility("default"))) const gradring::train::CudaModule* gradring_cuda_module() {
  using namespace gradring::train;
  static const CudaModule module = {.use_clock = &gradring::RunningClock::use,
                                    .kernels = &all_kernels,
                                    .device_count = &gradring::kernels::cuda_device_count,
                                    .make_device = &make_device,
                                    .make_backend = &make_backend,
                                    .make_peers = &make_peers,
                                    .make_nccl_transport = &make_nccl_transport,
                                    .make_ranges = &gradring::kernels::make_nvtx_ranges,
                                    .make_device_trace = &make_device_trace};
  return &module;
}
