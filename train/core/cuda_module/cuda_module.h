// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "comm/transports/nccl/nccl.h"
#include "kernels/base/deadline.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/ops/peers.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/device_trace.h"
#include "kernels/runtime/trace_track.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"
#include "nn/backend/backend.h"
#include "nn/backend/cuda/cuda_backend_options.h"

namespace gradring::train {

/// Raise it with every change of CudaModule or of the types in it: KernelSet and its tables, Device, Stream, Event,
/// Buffer, Backend and its plans, Transport, NcclOptions, PeerMaker, TraceRanges, DeviceTrace. Program and module each
/// have their own copy of these headers.
inline constexpr int kCudaModuleVersion = 15;

/// libgradring_cuda.so as the program sees it: nvcc's copy of every kernel, the devices that run it, the backend on top
/// of them, and the transport between them. Opening it needs neither a GPU nor its driver; making a device does.
///
/// Example   tests/train/core/cuda_module/cuda_module_test.cpp
struct CudaModule {
  int version = kCudaModuleVersion;  ///< always the first member, so that any program can read it in any module
  /// Makes the module count the time of deadlines with the program's clock; called by open_cuda_module.
  void (*use_clock)(RunningTime& time) = nullptr;
  const kernels::KernelSet& (*kernels)() = nullptr;
  /// GPUs that this process sees; 0 also without a driver: make_device(0) then says what is missing.
  int (*device_count)() = nullptr;
  /// Errors    DeviceError if there is no such device, no driver, or a driver that is too old; says what to do.
  std::unique_ptr<kernels::Device> (*make_device)(int index) = nullptr;
  /// For a device of this module, which must outlive the backend.
  ///
  /// Errors    as nn::CudaBackend.
  std::unique_ptr<nn::Backend> (*make_backend)(kernels::Device& device,
                                               const nn::CudaBackendOptions& options) = nullptr;
  /// NVIDIA's libraries as peers of our kernels in benchmarks. For a device of this module, which must outlive them.
  std::unique_ptr<kernels::PeerMaker> (*make_peers)(kernels::Device& device,
                                                    const nn::CudaBackendOptions& options) = nullptr;
  /// For a device of this module, which sets the options `gpu`, `make_current` and `is_captured` itself.
  ///
  /// Errors    as comm::make_nccl_transport; DeviceError if the module was built without NCCL.
  std::unique_ptr<comm::Transport> (*make_nccl_transport)(const comm::NcclOptions& options) = nullptr;
  /// Ranges for a profiler; null if the module was built without NVTX.
  std::unique_ptr<kernels::TraceRanges> (*make_ranges)() = nullptr;
  /// Records what the GPUs of this process execute.
  ///
  /// Errors    DeviceError if CUPTI is missing, or the module was built without it; says what to install.
  std::unique_ptr<kernels::DeviceTrace> (*make_device_trace)() = nullptr;
};

/// The one function that the module exports, and its name.
using CudaModuleEntry = const CudaModule* (*)();
inline constexpr const char* kCudaModuleEntry = "gradring_cuda_module";

/// Loads the module. It stays loaded until the process ends, so whatever came from it stays valid.
///
/// Errors    DeviceError if the file is missing, or is not a module of this version; says what to do.
const CudaModule& open_cuda_module(const std::filesystem::path& file);

/// The same for libgradring_cuda.so, whose GPUs must be real.
///
/// Errors    as open_cuda_module; DeviceError if the module simulates GPUs.
const CudaModule& open_real_gpus(const std::filesystem::path& file);

/// A module whose GPUs are simulated, and what simulates them.
struct SimulatedModule {
  const CudaModule& module;
  const simulated_gpu::SimulatedGpu& gpus;
};

/// The same for libgradring_simulated_gpu.so.
///
/// Errors    as open_cuda_module; DeviceError if the module's GPUs are real, or simulated by another version;
///           InvalidArgument for options that cannot be.
SimulatedModule open_simulated_gpus(const std::filesystem::path& file);
SimulatedModule open_simulated_gpus(const std::filesystem::path& file, const simulated_gpu::SimulationOptions& options);

}  // namespace gradring::train
