// SPDX-License-Identifier: Apache-2.0
#include "train/cuda_module/cuda_module.h"

#include <dlfcn.h>

#include <string>

#include "kernels/runtime/error.h"
#include "train/cuda_module/door.h"

namespace gradring::train {
namespace {

const CudaModuleDoor* open_door(const std::filesystem::path& file) {
  // Never closed: an error thrown by the module, whose type lies in it, may be caught when nobody holds the module any more;
  // and the CUDA runtime in it has work to do when the process ends.
  void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module)
    throw DeviceError("cannot open the CUDA module: " + std::string(::dlerror()) +
                      "; build with GRADRING_CUDA=ON, or use --device cpu");
  const auto open = reinterpret_cast<OpenCudaModuleDoor>(::dlsym(module, kOpenCudaModuleDoor));
  if (!open) throw DeviceError(file.string() + " is no CUDA module of gradring: build it again, beside this program");
  const CudaModuleDoor* const door = open();
  if (door->version != kCudaModuleVersion)
    throw DeviceError(file.string() + " is a CUDA module of version " + std::to_string(door->version) +
                      ", this program needs version " + std::to_string(kCudaModuleVersion) +
                      ": build or install both together");
  door->use_clock(RunningClock::time());
  return door;
}

}  // namespace

CudaModule::CudaModule(const std::filesystem::path& file) : door_(open_door(file)) {}

const kernels::KernelSet& CudaModule::kernels() const { return *door_->kernels; }

int CudaModule::device_count() const { return door_->device_count(); }

std::unique_ptr<kernels::Device> CudaModule::make_device(int index) const { return door_->make_device(index); }

std::unique_ptr<nn::Backend> CudaModule::make_backend(kernels::Device& device,
                                                      const nn::CudaBackendOptions& options) const {
  return door_->make_backend(device, options);
}

std::unique_ptr<kernels::PeerMaker> CudaModule::make_peers(kernels::Device& device,
                                                           const nn::CudaBackendOptions& options) const {
  return door_->make_peers(device, options);
}

std::unique_ptr<comm::Transport> CudaModule::make_nccl_transport(const comm::NcclOptions& options) const {
  return door_->make_nccl_transport(options);
}

}  // namespace gradring::train
