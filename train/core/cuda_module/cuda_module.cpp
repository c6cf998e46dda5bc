// SPDX-License-Identifier: Apache-2.0
#include "train/core/cuda_module/cuda_module.h"

#include <dlfcn.h>

#include <string>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

/// Never closed: an error thrown by the module has its type there, and may be caught long after; and the CUDA runtime
/// in it still works when the process ends.
void* opened(const std::filesystem::path& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw DeviceError("cannot open the module " + file.string() + ": " + ::dlerror() +
                      "; build or install the program and its modules together");
  return library;
}

/// Null if the library does not simulate GPUs.
simulated_gpu::SimulatedGpuEntry simulator_entry(const std::filesystem::path& file) {
  return reinterpret_cast<simulated_gpu::SimulatedGpuEntry>(::dlsym(opened(file), simulated_gpu::kSimulatedGpuEntry));
}

}  // namespace

const CudaModule& open_cuda_module(const std::filesystem::path& file) {
  void* const library = opened(file);
  const auto entry = reinterpret_cast<CudaModuleEntry>(::dlsym(library, kCudaModuleEntry));
  if (!entry)
    throw DeviceError(file.string() + " is not a CUDA module of this gradring: build or install both together");
  const CudaModule& module = *entry();
  if (module.version != kCudaModuleVersion)
    throw DeviceError(file.string() + " is a CUDA module of version " + std::to_string(module.version) +
                      ", this program needs version " + std::to_string(kCudaModuleVersion) +
                      ": build or install both together");
  module.use_clock(RunningClock::time());
  return module;
}

const CudaModule& open_real_gpus(const std::filesystem::path& file) {
  const CudaModule& module = open_cuda_module(file);
  if (simulator_entry(file))
    throw DeviceError(file.string() + " is the module that simulates GPUs: install the CUDA module there");
  return module;
}

SimulatedModule open_simulated_gpus(const std::filesystem::path& file) {
  const CudaModule& module = open_cuda_module(file);
  const auto entry = simulator_entry(file);
  if (!entry || entry()->version != simulated_gpu::kSimulatedGpuVersion)
    throw DeviceError(file.string() + " simulates no GPU for this gradring: build or install both together");
  return {module, *entry()};
}

SimulatedModule open_simulated_gpus(const std::filesystem::path& file,
                                    const simulated_gpu::SimulationOptions& options) {
  const SimulatedModule opened = open_simulated_gpus(file);
  opened.gpus.configure(options);
  opened.gpus.check_program();
  return opened;
}

}  // namespace gradring::train
