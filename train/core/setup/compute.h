// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "train/core/config/train_config.h"
#include "train/core/cuda_module/cuda_module.h"
#include "train/core/data_parallel/device_replica.h"
#include "train/launch/workers/worker_environment.h"

namespace gradring::train {

/// The number of a rank's compute threads: `asked` if above 0, else the first number of OMP_NUM_THREADS, else its share
/// of the processors that are usable (usable_processors), at least one.
///
/// Errors    UsageError if either is more than kMostThreads.
unsigned threads_of_rank(std::int64_t asked, const WorkerEnvironment& environment, const VariableLookup& lookup);

/// The same for each device of --data-parallel: the rank's share of the cores is divided over them.
unsigned threads_of_device(const TrainConfig& config, WorkerEnvironment environment, const VariableLookup& lookup);

/// Binds this process and its future threads to `threads` cores of its own: the usable cores are divided in the order
/// of local ranks.
///
/// Errors    UsageError if there are too few.
void pin_to_own_cores(unsigned threads, const WorkerEnvironment& environment);

/// The path of libgradring_cuda.so: in the program's folder (a build folder), or in ../GRADRING_MODULE_DIR (installed).
/// Empty if it is in neither.
std::filesystem::path cuda_module_file();

/// The same for libgradring_simulated_gpu.so.
std::filesystem::path simulated_gpu_module_file();

/// The options that select device, backend and kernels.
struct ComputeSpec {
  std::string device = "auto";           ///< auto, cpu, cuda, cuda:<index>
  std::string simulate_gpu = kRealGpus;  ///< with the device cuda
  std::uint64_t simulate_seed = 0;
  BackendKind backend{};
  std::string conv = "auto";
  std::string gemm = "auto";
  bool autotune = false;                 ///< for a GPU; results are kept in plan_cache_file()
  bool reproducible = false;             ///< deterministic algorithms only; a CPU always uses such
  unsigned threads = 1;                  ///< of a CPU backend, for work of the calling thread
  std::chrono::milliseconds timeout{0};  ///< of collectives (--timeout): streams of a CPU wait longer
  /// See nn::CudaBackendOptions; both are called while plans are made.
  std::function<std::string(const nn::Chooser&)> share_choice = [](const nn::Chooser& choose) { return choose(); };
  std::function<std::string(const std::string&)> resumed_choice = [](const std::string&) { return std::string(); };
  int local_rank = 0;  ///< the GPU if no index is named
};
ComputeSpec compute_spec(const TrainConfig& config, unsigned threads, int local_rank);

/// What a rank computes with.
struct Compute {
  const CudaModule* module = nullptr;  ///< null on a CPU
  kernels::KernelSet kernels;          ///< compiled for `device`
  std::unique_ptr<kernels::Device> device;
  std::unique_ptr<nn::Backend> backend;
  const simulated_gpu::SimulatedGpu* simulator = nullptr;  ///< of the GPU; null if it is real
  std::string simulated = kRealGpus;                       ///< the card of a simulated GPU
  unsigned threads = 1;                                    ///< of a CPU backend
  std::vector<std::string> remarks;                        ///< for the log: why no GPU is used, missing libraries
};

/// The file of --autotune's results: gradring/plans.json in XDG_CACHE_HOME or ~/.cache; empty if both are unknown.
std::filesystem::path plan_cache_file();

/// auto selects a GPU if this build has the CUDA module and the machine a GPU, else the CPU, with a remark.
///
/// Errors    UsageError if backend and device contradict each other, or a kernel's name is unknown; EnvironmentError if
///           the device is missing; says what to install, or how many devices there are.
Compute make_compute(const ComputeSpec& spec);

/// "cpu", "cuda:1" or "cuda:1, simulated h100".
std::string shown_device(const Compute& compute);

/// At the end of what computes: nothing for a real device.
///
/// Errors    DeviceError if a simulated GPU found faults.
void check_simulation(const Compute& compute);

/// The devices of --data-parallel besides the first: for a CPU more of the kind, which are threads; for cuda:0 the GPUs
/// after it.
///
/// Errors    as make_compute.
std::vector<Compute> make_further_devices(const ComputeSpec& spec, const Compute& first, std::int64_t devices);

/// What the trainer uses of them; they must outlive it.
std::vector<FurtherDevice> further_devices(const std::vector<Compute>& computes);

}  // namespace gradring::train
