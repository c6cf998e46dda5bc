// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "comm/transport/nccl/nccl.h"
#include "kernels/kernel_set.h"
#include "kernels/peers.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/backend/cuda/cuda_backend_options.h"

namespace gradring::train {

struct CudaModuleDoor;

/// libgradring_cuda.so, opened: nvcc's copy of every kernel, the devices that run it, the backend on top of
/// them, and the transport between them.
/// Opening it needs neither a GPU nor its driver; making a device does. The file stays loaded until the process ends, so
/// tables, devices, backends and errors from it may outlive this object.
///
/// Errors    DeviceError if the file is not there, or is no module of this version: says what to do.
/// Example   tests/train/cuda_module/cuda_module_test.cpp
class CudaModule {
 public:
  explicit CudaModule(const std::filesystem::path& file);

  const kernels::KernelSet& kernels() const;
  /// How many GPUs this process sees; 0 also where there is no driver: make_device(0) then says what is missing.
  int device_count() const;
  /// Errors    DeviceError if there is no such device, or no driver, or too old a one: says what to do.
  std::unique_ptr<kernels::Device> make_device(int index) const;
  /// For a device of this module, which must outlive it.
  ///
  /// Errors    as nn::CudaBackend.
  std::unique_ptr<nn::Backend> make_backend(kernels::Device& device, const nn::CudaBackendOptions& options) const;
  /// NVIDIA's libraries, to be measured beside our kernels. For a device of this module, which must outlive it.
  std::unique_ptr<kernels::PeerMaker> make_peers(kernels::Device& device, const nn::CudaBackendOptions& options) const;
  /// For a device of this module. Which GPU that is, and what CUDA must be told about it, the module knows: `gpu`,
  /// `make_current` and `is_captured` of the options may be left out.
  ///
  /// Errors    as comm::make_nccl_transport; DeviceError if the module was built without NCCL.
  std::unique_ptr<comm::Transport> make_nccl_transport(const comm::NcclOptions& options) const;

 private:
  const CudaModuleDoor* door_;
};

}  // namespace gradring::train
