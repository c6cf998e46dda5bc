// SPDX-License-Identifier: Apache-2.0
#include "train/setup/make_device.h"

#include <filesystem>

#include "kernels/cuda_module/cuda_module.h"
#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_device.h"
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/reference/reference_backend.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"
#include "train/setup/cuda_module_file.h"

namespace gradring::train {
namespace {

/// What keeps `device` from being opened; empty if nothing does.
std::string why_no_device(const kernels::DeviceId& device) {
  const std::filesystem::path file = cuda_module_file();
  if (file.empty()) return "";  // a build without CUDA: more would not help
  try {
    kernels::CudaModule(file).make_device(device.index);
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

[[noreturn]] void refuse_cuda(const kernels::DeviceId& device) {
  const std::string why = why_no_device(device);
  throw EnvironmentError(
      why.empty() ? "this version of gradring cannot train on " + device.to_string() + " yet; use --device cpu"
                  : "cannot use " + device.to_string() + ": " + why +
                        "; this version of gradring could not train on it yet either: use --device cpu");
}

}  // namespace

std::unique_ptr<kernels::Device> make_device(const std::string& name, unsigned threads) {
  const kernels::DeviceId id = name == "auto" ? kernels::DeviceId{} : kernels::DeviceId::parse(name);
  if (id.kind == kernels::DeviceKind::cuda) refuse_cuda(id);
  return std::make_unique<kernels::HostDevice>(simt::ExecutorOptions{.workers = threads});
}

std::unique_ptr<nn::Backend> make_backend(const std::string& name, const kernels::Device& device, unsigned threads) {
  if (name == "reference") return std::make_unique<nn::ReferenceBackend>(device);
  if (name == "auto" || name == "cpu") return std::make_unique<nn::CpuBackend>(device, threads);
  throw UsageError("there is no backend '" + name + "': there are reference and cpu");
}

}  // namespace gradring::train
