// SPDX-License-Identifier: Apache-2.0
#include "train/core/doctor/doctor.h"

#include <fmt/format.h>

#include "data/fetch/http.h"
#include "data/images/image.h"
#include "kernels/base/commit.h"
#include "kernels/base/error.h"
#include "kernels/lib/variant.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/cpu_level.h"
#include "kernels/simulated_gpu/cards/card.h"
#include "nn/backend/cpu/onednn.h"
#include "train/core/cuda_module/cuda_module.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/tcp_rendezvous.h"
#include "train/launch/workers/private_folder.h"
#include "train/launch/workers/worker_environment.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train::doctor {
namespace {

Finding cpu_level() {
  const auto running = kernels::cpu_level();
  const auto supported = kernels::supported_cpu_level();
  const std::string_view name = kernels::cpu_level_name(running);
  if (kernels::cpu_levels().size() == 1) return {"CPU level", fmt::format("{}, no other level in this build", name)};
  if (running == supported) return {"CPU level", std::string(name)};
  return {"CPU level", fmt::format("{}, set by {}", name, kernels::kCpuLevelVariable),
          fmt::format("this processor has {}: unset {} for more speed", kernels::cpu_level_name(supported),
                      kernels::kCpuLevelVariable)};
}

Finding onednn() {
  const std::string description = nn::describe_onednn();
  if (description.starts_with("oneDNN")) return {"oneDNN", description.substr(sizeof "oneDNN")};
  return {"oneDNN", "none",
          "convolutions of other shapes than the seed model's are slow: install libdnnl-dev and build again"};
}

Finding curl() {
  try {
    data::require_http();
    return {"curl", data::curl_version()};
  } catch (const data::FetchError& error) {
    return {"curl", "none", fmt::format("gradring data fetch cannot work: {}", error.what())};
  }
}

Finding libpng() {
  const std::string version = data::png_library();
  if (!version.empty()) return {"libpng", version};
  return {"libpng", "none", "gradring predict cannot work: install libpng-dev and build again"};
}

Finding libjpeg() {
  const std::string version = data::jpeg_library();
  if (!version.empty()) return {"libjpeg-turbo", version};
  return {"libjpeg-turbo", "none", "JPEGs of an image folder cannot be read: install libjpeg-dev and build again"};
}

Finding cuda_module() {
  const auto file = cuda_module_file();
  if (file.empty())
    return {"CUDA module", "none", "to build it, configure with GRADRING_CUDA=ON and the CUDA toolkit, 12.0 or later"};
  try {
    open_real_gpus(file);
    return {"CUDA module", file.string()};
  } catch (const DeviceError& error) {
    return {"CUDA module", "does not open", error.what()};
  }
}

Finding simulated_gpu_module() {
  const auto file = simulated_gpu_module_file();
  if (file.empty())
    return {"simulated GPU", "none",
            "to build it, configure with GRADRING_CUDA=ON and the CUDA toolkit, 12.8 or later"};
  try {
    open_simulated_gpus(file);
    return {"simulated GPU", file.string() + ", for --device cuda --simulate-gpu " + simulated_gpu::card_names()};
  } catch (const DeviceError& error) {
    return {"simulated GPU", "does not open", error.what()};
  }
}

/// "conv_relu_pool native, gemm strips, ...": the compute-bound kernels.
std::string variants_of(const Compute& compute) {
  const kernels::KernelSet& kernels = compute.kernels;
  const auto name = [&compute](const auto& table) {
    return kernels::pick_variant(table, *compute.device, kernels::DType::f32).name;
  };
  return fmt::format("conv_relu_pool {}, conv2d {}, gemm {}, max_pool2d {}", name(kernels.conv_relu_pool),
                     name(kernels.conv2d), name(kernels.gemm), name(kernels.max_pool2d));
}

/// How OpenMP's threads wait for each other: the variable that says so, or the default of train/app/program/program.cpp.
std::string openmp_wait(const VariableLookup& environment) {
  if (!nn::has_onednn()) return "no OpenMP in this build";
  for (const char* variable : nn::kOpenmpWaitVariables)
    if (const auto value = environment(variable)) return fmt::format("{}={}", variable, *value);
  return "passively; OMP_WAIT_POLICY=active spins";
}

std::vector<Finding> built_in() {
  return {{"commit", kCommit}, cpu_level(),           onednn(), curl(), libpng(), libjpeg(),
          cuda_module(),       simulated_gpu_module()};
}

std::vector<Finding> used_here(const VariableLookup& environment, const std::string& simulate_gpu) {
  const unsigned threads = threads_of_rank(0, WorkerEnvironment{}, environment);
  const Compute compute = make_compute(
      {.device = is_simulated(simulate_gpu) ? "cuda" : "auto", .simulate_gpu = simulate_gpu, .threads = threads});
  const kernels::Device& device = *compute.device;
  const bool gpu = device.id().kind == kernels::DeviceKind::cuda;
  return {{"device", device.id().to_string() + ": " + device.description(),
           fmt::format("{}", fmt::join(compute.remarks, "; "))},
          {"backend", fmt::format("{}: our kernels, and {}", compute.backend->name(),
                                  compute.simulator ? "no library"
                                  : gpu             ? "NVIDIA's libraries where they were found"
                                                    : nn::describe_onednn())},
          {"our kernels", variants_of(compute)},
          {"threads", fmt::format("{} for one rank; several share the cores out, or take --threads each", threads)},
          {"OpenMP wait", openmp_wait(environment)}};
}

Finding rendezvous(const WorkerEnvironment& worker) {
  if (!worker.store_path.empty()) return {"rendezvous", "by the launcher's store, " + worker.store_path};
  if (!worker.spans_nodes()) return {"rendezvous", "on this machine, without a port"};
  try {
    return {"rendezvous",
            fmt::format("rank 0 serves a store at {}{}", store_endpoint(worker).to_string(),
                        worker.master_source.empty() ? "" : ", a host that " + worker.master_source + " names")};
  } catch (const EnvironmentError& error) {
    return {"rendezvous", "none", error.what()};
  }
}

Finding token(const VariableLookup& environment, bool is_needed) {
  try {
    if (!given_token(environment).empty()) return {"GRADRING_TOKEN", "set"};
    return {"GRADRING_TOKEN", "not set",
            is_needed ? "ranks on several machines need the same one: openssl rand -hex 32 prints one" : ""};
  } catch (const Error& error) {
    return {"GRADRING_TOKEN", "cannot be used", error.what()};
  }
}

/// How a training that is started here joins other ranks.
std::vector<Finding> launched(const VariableLookup& environment) {
  WorkerEnvironment worker;
  try {
    worker = WorkerEnvironment::from_environment(environment);
  } catch (const InvalidArgument& error) {
    return {{"launcher", "unknown", error.what()}};
  }
  if (worker.world_size == 1) return {{"launcher", "none: a training here has one rank"}};
  const bool over_tcp = worker.spans_nodes() && worker.store_path.empty();
  return {{"launcher", fmt::format("{}: rank {} of {}, of {} on this machine", worker.launcher, worker.rank,
                                   worker.world_size, worker.local_world_size)},
          rendezvous(worker),
          token(environment, over_tcp)};
}

}  // namespace

std::vector<Section> examine(const VariableLookup& environment, const std::string& simulate_gpu) {
  return {{"Built in", built_in()},
          {"Found", found_here(environment)},
          {"Used", used_here(environment, simulate_gpu)},
          {"Launched", launched(environment)}};
}

}  // namespace gradring::train::doctor
