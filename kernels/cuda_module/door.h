// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels {

/// To be raised with every change of CudaModuleDoor and of what it hands out: KernelSet and the tables in it, Device,
/// Stream, Event, Buffer. The program and the module see these types each in its own copy of the headers.
inline constexpr int kCudaModuleVersion = 1;

/// What the CUDA module offers to the program.
struct CudaModuleDoor {
  int version = kCudaModuleVersion;  ///< first, whatever else changes, so that a program can read it in any module
  const KernelSet* kernels = nullptr;
  /// 0 also where there is no driver.
  int (*device_count)() = nullptr;
  /// Errors    DeviceError if there is no such device; says why.
  std::unique_ptr<Device> (*make_device)(int index) = nullptr;
};

/// The one function that the module shows to the outside, and its name.
using OpenCudaModuleDoor = const CudaModuleDoor* (*)();
inline constexpr const char* kOpenCudaModuleDoor = "gradring_cuda_door";

}  // namespace gradring::kernels
