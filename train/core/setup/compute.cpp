// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/compute.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>

#include "kernels/base/error.h"
#include "kernels/base/processors.h"
#include "kernels/host/host_device.h"
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/cpu/onednn.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "train/launch/launcher.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

using kernels::DeviceId;
using kernels::DeviceKind;

constexpr std::string_view kAuto = "auto";

[[noreturn]] void throw_too_many_threads(const char* name, const std::string& value) {
  throw UsageError(fmt::format("{} is {}, expected at most {} threads: lower it", name, value, kMostThreads));
}

/// The first number of OMP_NUM_THREADS, a list with a number for each level of nested parallel regions; 0 without one.
///
/// Errors    UsageError if it is more than kMostThreads.
unsigned omp_num_threads(const VariableLookup& lookup) {
  const std::string list = lookup("OMP_NUM_THREADS").value_or("");
  std::string first = list.substr(0, list.find(','));
  first.erase(first.find_last_not_of(" \t") + 1);
  first.erase(0, first.find_first_not_of(" \t"));
  unsigned threads = 0;
  const auto [end, failed] = std::from_chars(first.data(), first.data() + first.size(), threads);
  if (end != first.data() + first.size()) return 0;
  if (failed == std::errc::result_out_of_range || threads > kMostThreads)
    throw_too_many_threads("OMP_NUM_THREADS", list);
  return failed == std::errc() ? threads : 0;
}

/// OpenMP ends the process if it cannot start a thread, so this tries before whether there can be as many.
///
/// Errors    std::system_error if not.
void check_can_start(unsigned threads) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::vector<std::jthread> started;
  while (started.size() + 1 < threads)  // one is the caller
    started.emplace_back([&](const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      stopped.wait(lock, stop, [] { return false; });
    });
}

std::unique_ptr<nn::Backend> make_host_backend(const ComputeSpec& spec, const kernels::Device& device) {
  const bool named = spec.conv != kAuto || spec.gemm != kAuto;
  if (spec.backend == BackendKind::reference) {
    if (named) throw UsageError("--backend reference has no kernel variants: leave --conv and --gemm out");
    return std::make_unique<nn::ReferenceBackend>(device);
  }
  check_can_start(spec.threads);
  return std::make_unique<nn::CpuBackend>(device, spec.threads,
                                          nn::VariantChoice{.conv = spec.conv, .gemm = spec.gemm});
}

Compute on_host(const ComputeSpec& spec) {
  if (spec.backend == BackendKind::cuda)
    throw UsageError("--backend cuda computes on a GPU, not on --device cpu: leave one out");
  Compute compute;
  compute.kernels = kernels::kernel_set();
  compute.device = std::make_unique<kernels::HostDevice>(simt::ExecutorOptions{.workers = spec.threads},
                                                         kernels::HostDevice::kPatience + spec.timeout);
  compute.backend = make_host_backend(spec, *compute.device);
  return compute;
}

/// Errors    DeviceError if the module is missing.
const CudaModule& real_gpus() {
  const std::filesystem::path file = cuda_module_file();
  if (file.empty())
    throw DeviceError("no CUDA module found (libgradring_cuda.so beside the program, or in ../" GRADRING_MODULE_DIR
                      "): install the package gradring-cuda, or build with GRADRING_CUDA=ON and the CUDA toolkit");
  return open_real_gpus(file);
}

/// Errors    DeviceError if the module is missing.
SimulatedModule simulated_gpus(const ComputeSpec& spec) {
  const std::filesystem::path file = simulated_gpu_module_file();
  if (file.empty())
    throw DeviceError(
        "this build cannot simulate GPUs (no libgradring_simulated_gpu.so beside the program, or in "
        "../" GRADRING_MODULE_DIR "): build with GRADRING_CUDA=ON and the CUDA toolkit, 12.8 or later");
  return open_simulated_gpus(file, {.card = spec.simulate_gpu, .seed = spec.simulate_seed, .threads = spec.threads});
}

/// What --autotune ranks plans by where times tell nothing: the sum of the bounds that a card has for each kernel
/// (docs/counters.md). Later kernels are executed in the same order as without it.
nn::CallTimer bound_of_call(const simulated_gpu::SimulatedGpu& gpus) {
  return [&gpus](kernels::Device&, kernels::Stream&, const std::function<void()>& enqueue_call) {
    const std::uint64_t launches_before = gpus.launches();
    gpus.begin_counting(false);
    std::exception_ptr failed;
    try {
      enqueue_call();
    } catch (...) {
      failed = std::current_exception();
    }
    const std::vector<simulated_gpu::CountedWork> counted = gpus.end_counting();
    gpus.repeat_from(launches_before);
    if (failed) std::rethrow_exception(failed);
    double seconds = 0;
    for (const simulated_gpu::CountedWork& work : counted) seconds += work.bound_seconds;
    return seconds;
  };
}

/// Errors    DeviceError if the module or the device is missing.
Compute on_cuda(const ComputeSpec& spec, int index) {
  Compute compute;
  if (!is_simulated(spec.simulate_gpu)) {
    compute.module = &real_gpus();
  } else {
    const SimulatedModule simulated = simulated_gpus(spec);
    compute.module = &simulated.module;
    compute.simulator = &simulated.gpus;
    compute.simulated = spec.simulate_gpu;
  }
  compute.kernels = compute.module->kernels();
  compute.device = compute.module->make_device(index);
  const auto remark = [&compute](const std::string& text) { compute.remarks.push_back(text); };
  if (compute.simulator)
    remark(fmt::format(
        "the GPU is simulated on the CPU ({} thread{}), by our own kernels alone: times tell nothing about a "
        "real one",
        spec.threads, spec.threads == 1 ? "" : "s"));
  if (compute.simulator && spec.autotune)
    remark("--autotune on a simulated GPU chooses our kernels by the counted bound of their time, as it has no times");
  compute.backend = compute.module->make_backend(
      *compute.device, {.conv = spec.conv,
                        .gemm = spec.gemm,
                        .reproducible = spec.reproducible,
                        .autotune = spec.autotune,
                        .has_libraries = compute.simulator == nullptr,
                        .plan_cache = plan_cache_file(),
                        .share_choice = spec.share_choice,
                        .resumed_choice = spec.resumed_choice,
                        .time_call = compute.simulator ? bound_of_call(*compute.simulator) : nn::CallTimer(),
                        .say = remark});
  return compute;
}

/// A GPU, without falling back to the CPU.
Compute on_named_gpu(const ComputeSpec& spec, int index) {
  if (spec.backend != BackendKind::automatic && spec.backend != BackendKind::cuda)
    throw UsageError(fmt::format("--backend {} computes on the CPU, not on --device {}: leave one out",
                                 word_of(spec.backend), spec.device));
  try {
    return on_cuda(spec, index);
  } catch (const DeviceError& error) {
    const bool can_simulate = !is_simulated(spec.simulate_gpu) && !simulated_gpu_module_file().empty();
    throw EnvironmentError(
        "cannot use " + DeviceId{DeviceKind::cuda, index}.to_string() + ": " + error.what() + "; or use --device cpu" +
        (can_simulate ? ", or --device cuda --simulate-gpu h100, which computes slowly on the CPU" : ""));
  }
}

/// Whether a GPU is usable; otherwise `why_not` says what is missing.
bool gpu_is_there(std::string& why_not) {
  const std::filesystem::path file = cuda_module_file();
  try {
    if (file.empty()) throw DeviceError("this build has no CUDA module");
    const CudaModule& module = open_real_gpus(file);
    if (module.device_count() == 0) module.make_device(0);  // says what is missing
    return true;
  } catch (const DeviceError& error) {
    why_not = error.what();
    return false;
  }
}

Compute on_best(const ComputeSpec& spec) {
  if (spec.backend == BackendKind::cuda) return on_named_gpu(spec, spec.local_rank);
  std::string why_not;
  if (spec.backend == BackendKind::automatic && gpu_is_there(why_not)) return on_named_gpu(spec, spec.local_rank);
  Compute compute = on_host(spec);
  if (!why_not.empty()) compute.remarks.push_back("no GPU is used: " + why_not);
  return compute;
}

Compute make(const ComputeSpec& spec) {
  check_simulated_gpu(spec.simulate_gpu, spec.device);
  if (spec.device == kAuto) return on_best(spec);
  const DeviceId id = DeviceId::parse(spec.device);
  if (id.kind == DeviceKind::cpu) return on_host(spec);
  return on_named_gpu(spec, spec.device == "cuda" ? spec.local_rank : id.index);
}

}  // namespace

unsigned threads_of_rank(std::int64_t asked, const WorkerEnvironment& environment, const VariableLookup& lookup) {
  if (asked > kMostThreads) throw_too_many_threads("--threads", std::to_string(asked));
  if (asked > 0) return static_cast<unsigned>(asked);
  const unsigned given = omp_num_threads(lookup);
  if (given > 0) return given;
  return static_cast<unsigned>(std::max(1, usable_processors() / environment.local_world_size));
}

unsigned threads_of_device(const TrainConfig& config, WorkerEnvironment environment, const VariableLookup& lookup) {
  environment.local_world_size *= static_cast<int>(config.data_parallel);
  return threads_of_rank(threads_option(config), environment, lookup);
}

void pin_to_own_cores(unsigned threads, const WorkerEnvironment& environment) {
  cpu_set_t usable, own;
  CPU_ZERO(&usable);
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot read the CPU affinity of this process");
  const unsigned first = static_cast<unsigned>(environment.local_rank) * threads;
  unsigned seen = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable)) continue;
    if (seen >= first && seen < first + threads) CPU_SET(core, &own);
    ++seen;
  }
  const unsigned needed = static_cast<unsigned>(environment.local_world_size) * threads;
  if (needed > seen)
    throw UsageError(
        fmt::format("--pin needs {} cores ({} a rank), but there are {}: lower --threads, start fewer ranks, or leave "
                    "--pin out",
                    needed, threads, seen));
  if (::sched_setaffinity(0, sizeof own, &own) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot set the CPU affinity of this process");
}

namespace {

/// Of the first that exists; empty if neither exists.
std::filesystem::path module_file(const char* name) {
  const std::filesystem::path folder = std::filesystem::path(own_program()).parent_path();
  for (const char* subfolder : {"", "../" GRADRING_MODULE_DIR}) {
    std::error_code ignored;
    std::filesystem::path file = (folder / subfolder / name).lexically_normal();
    if (std::filesystem::exists(file, ignored)) return file;
  }
  return {};
}

}  // namespace

std::filesystem::path cuda_module_file() { return module_file("libgradring_cuda.so"); }

std::filesystem::path simulated_gpu_module_file() { return module_file("libgradring_simulated_gpu.so"); }

std::filesystem::path plan_cache_file() {
  const std::filesystem::path file = "gradring/plans.json";
  if (const auto cache = system_variable("XDG_CACHE_HOME"); cache && !cache->empty()) return *cache / file;
  if (const auto home = system_variable("HOME"); home && !home->empty()) return *home / (".cache" / file);
  return {};
}

ComputeSpec compute_spec(const TrainConfig& config, unsigned threads, int local_rank) {
  return {.device = config.device,
          .simulate_gpu = config.simulate_gpu,
          .simulate_seed = config.simulate_seed,
          .backend = config.backend,
          .conv = config.conv,
          .gemm = config.gemm,
          .autotune = config.autotune,
          .reproducible = config.reproducible,
          .threads = threads,
          .timeout = config.timeout,
          .local_rank = local_rank};
}

Compute make_compute(const ComputeSpec& spec) {
  try {
    Compute compute = make(spec);
    compute.threads = spec.threads;
    return compute;
  } catch (const UsageError&) {
    throw;
  } catch (const InvalidArgument& error) {  // an unknown name, from a backend
    throw UsageError(error.what());
  }
}

std::string shown_device(const Compute& compute) {
  return shown_device(compute.device->id().to_string(), compute.simulated);
}

void check_simulation(const Compute& compute) {
  if (!compute.simulator) return;
  const std::vector<std::string> faults = compute.simulator->faults();
  if (!faults.empty())
    throw DeviceError(fmt::format("the simulated GPU found {} faults, which stderr has; the first: {}", faults.size(),
                                  faults.front()));
}

std::vector<Compute> make_further_devices(const ComputeSpec& spec, const Compute& first, std::int64_t devices) {
  std::vector<Compute> others;
  const DeviceId id = first.device->id();
  for (int index = 1; index < devices; ++index) {
    ComputeSpec further = spec;
    further.device = id.kind == DeviceKind::cuda ? DeviceId{DeviceKind::cuda, id.index + index}.to_string() : "cpu";
    others.push_back(make_compute(further));
  }
  return others;
}

std::vector<FurtherDevice> further_devices(const std::vector<Compute>& computes) {
  std::vector<FurtherDevice> devices;
  for (const Compute& compute : computes) {
    devices.push_back({.device = *compute.device, .backend = *compute.backend});
    if (compute.device->id().kind == DeviceKind::cpu)
      devices.back().begin = [threads = compute.threads] { nn::set_onednn_threads(threads); };
  }
  return devices;
}

}  // namespace gradring::train
