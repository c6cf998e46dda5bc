// SPDX-License-Identifier: Apache-2.0
// What CudaModule promises, by stand-ins for GPUs: the program that links it trains on them as on GPUs.
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/runtime/cuda/cupti_trace.h"
#include "kernels/runtime/cuda/nvtx_ranges.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "tests/train/core/cuda_module/stand_in/gpu.h"
#include "train/core/cuda_module/cuda_module.h"

namespace gradring::tests {
namespace {

/// The numbers of the GPUs that this process sees.
std::vector<std::string> visible_gpus() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::istringstream list(visible ? visible : "0,1,2,3,4,5,6,7");
  std::vector<std::string> numbers;
  for (std::string number; std::getline(list, number, ',');) numbers.push_back(number);
  return numbers;
}

const kernels::KernelSet& all_kernels() {
  static const kernels::KernelSet kernels = stand_in_kernels();
  return kernels;
}

int device_count() { return static_cast<int>(visible_gpus().size()); }

std::unique_ptr<kernels::Device> make_device(int index) { return std::make_unique<StandInGpu>(index); }

/// The kernels that a GPU's backend chooses for itself: options have no effect.
std::unique_ptr<nn::Backend> make_backend(kernels::Device& device, const nn::CudaBackendOptions&) {
  return std::make_unique<nn::KernelBackend>(all_kernels(), device, "cuda");
}

std::unique_ptr<comm::Transport> make_nccl_transport(const comm::NcclOptions& options) {
  const auto& device = static_cast<const StandInGpu&>(options.device);  // the module makes no other
  comm::NcclOptions complete = options;
  complete.gpu = "stand-in-" + visible_gpus().at(static_cast<std::size_t>(device.id().index));
  complete.is_captured = [&device](kernels::Stream&) { return device.enqueues_graph(); };
  return comm::make_nccl_transport(complete);
}

/// CUPTI is a fake that LD_LIBRARY_PATH leads to.
std::unique_ptr<kernels::DeviceTrace> make_device_trace() { return kernels::make_cupti_trace(); }

}  // namespace
}  // namespace gradring::tests

/// For entry.cpp.
extern "C" const gradring::train::CudaModule* gradring_stand_in_module() {
  using namespace gradring::tests;
  static const gradring::train::CudaModule module = {.use_clock = &gradring::RunningClock::use,
                                                     .kernels = &all_kernels,
                                                     .device_count = &device_count,
                                                     .make_device = &make_device,
                                                     .make_backend = &make_backend,
                                                     .make_nccl_transport = &make_nccl_transport,
                                                     .make_ranges = &gradring::kernels::make_nvtx_ranges,
                                                     .make_device_trace = &make_device_trace};
  return &module;
}
