// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "train/config/train_config.h"
#include "train/cuda_module/cuda_module.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// How many threads a rank computes with: as many as `asked` for; else OMP_NUM_THREADS; else its share of the cores, at
/// least one.
///
/// Errors    UsageError if either is more than kMostThreads.
unsigned threads_of_rank(std::int64_t asked, const WorkerEnvironment& place, const VariableLookup& environment);

/// Binds this process, and the threads that it will start, to `threads` cores that no other rank of this machine takes:
/// those that it may run on now, dealt out in the order of the ranks.
///
/// Errors    UsageError if there are not so many.
void pin_to_own_cores(unsigned threads, const WorkerEnvironment& place);

/// Where libgradring_cuda.so lies: beside the program, as in a build folder, or in ../GRADRING_MODULE_DIR, as where it
/// is installed. Empty if it is in neither.
std::filesystem::path cuda_module_file();

/// What a user asked to compute with, in the words of the options of the same names.
struct ComputeSpec {
  std::string device = "auto";   ///< auto, cpu, cuda, cuda:<index>
  std::string backend = "auto";  ///< auto, reference, cpu, cuda
  std::string conv = "auto";
  std::string gemm = "auto";
  bool autotune = false;      ///< of a GPU's backend; what it finds is kept in plan_cache_file()
  bool reproducible = false;  ///< a CPU always is
  unsigned threads = 1;       ///< that a CPU computes with, called by this one
  /// See nn::CudaBackendOptions; called while plans are made, not before.
  std::function<std::string(const nn::Chooser&)> share_choice = [](const nn::Chooser& choose) { return choose(); };
  int local_rank = 0;  ///< the GPU that a rank takes where no index is named
};

/// What the options ask for.
ComputeSpec compute_spec(const TrainConfig& config, unsigned threads, int local_rank);

/// What a rank computes with, in the order in which it must be destroyed backwards: device and backend of a GPU are
/// made of the module's code.
struct Compute {
  const CudaModule* module = nullptr;  ///< null on a CPU
  kernels::KernelSet kernels;          ///< the copies that run on `device`
  std::unique_ptr<kernels::Device> device;
  std::unique_ptr<nn::Backend> backend;
  unsigned threads = 1;              ///< that a CPU computes with
  std::vector<std::string> remarks;  ///< for the log: why there is no GPU, what a backend lacks
};

/// Where a GPU's backend keeps what it measured: gradring/plans.json in XDG_CACHE_HOME, or in ~/.cache. Empty where
/// there is neither.
std::filesystem::path plan_cache_file();

/// auto takes a GPU where this build has the CUDA module and the machine has one, else the CPU, and remarks on it.
///
/// Errors    UsageError if backend and device contradict each other, or nothing has a chosen name; EnvironmentError if
///           the device is not there: says what is missing, or how many there are.
Compute make_compute(const ComputeSpec& spec);

}  // namespace gradring::train
