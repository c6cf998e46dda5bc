// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/transport/nccl/nccl.h"
#include "kernels/bench/kernel_case.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/backend/cuda/cuda_backend_options.h"

namespace gradring::train {

/// To be raised with every change of CudaModuleDoor and of what it hands out: KernelSet and the tables in it, Device,
/// Stream, Event, Buffer, Backend and its plans, Transport, PeerMaker. The program and the module see these types each in its own copy of the
/// headers.
inline constexpr int kCudaModuleVersion = 5;

/// What the CUDA module offers to the program: one function for each thing that only it can make.
struct CudaModuleDoor {
  int version = kCudaModuleVersion;  ///< first, whatever else changes, so that a program can read it in any module
  /// Makes the module count the time of deadlines with the program's clock. To be called before anything else.
  void (*use_clock)(RunningTime& time) = nullptr;
  const kernels::KernelSet* kernels = nullptr;
  /// 0 also where there is no driver.
  int (*device_count)() = nullptr;
  /// Errors    DeviceError if there is no such device; says why.
  std::unique_ptr<kernels::Device> (*make_device)(int index) = nullptr;
  /// For a device of make_device, which must outlive it.
  ///
  /// Errors    as nn::CudaBackend.
  std::unique_ptr<nn::Backend> (*make_backend)(kernels::Device& device,
                                               const nn::CudaBackendOptions& options) = nullptr;
  /// Likewise; see cuda_module.h.
  std::unique_ptr<kernels::bench::PeerMaker> (*make_peers)(kernels::Device& device,
                                                           const nn::CudaBackendOptions& options) = nullptr;
  /// Joins devices of make_device; see cuda_module.h.
  std::unique_ptr<comm::Transport> (*make_nccl_transport)(const comm::NcclOptions& options) = nullptr;
};

/// The one function that the module shows to the outside, and its name.
using OpenCudaModuleDoor = const CudaModuleDoor* (*)();
inline constexpr const char* kOpenCudaModuleDoor = "gradring_cuda_door";

}  // namespace gradring::train
