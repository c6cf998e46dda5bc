// SPDX-License-Identifier: Apache-2.0
#include "train/setup/make_device.h"

#include <dlfcn.h>

#include "kernels/runtime/host/host_device.h"
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/reference/reference_backend.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

[[noreturn]] void refuse_cuda(const std::string& name) {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!driver)
    throw EnvironmentError("there is no device " + name +
                           " here: no NVIDIA driver was found (libcuda.so.1 cannot be loaded); use --device cpu");
  ::dlclose(driver);
  throw EnvironmentError("this version of gradring cannot train on " + name + " yet; use --device cpu");
}

}  // namespace

std::unique_ptr<kernels::Device> make_device(const std::string& name, unsigned threads) {
  const kernels::DeviceId id = name == "auto" ? kernels::DeviceId{} : kernels::DeviceId::parse(name);
  if (id.kind == kernels::DeviceKind::cuda) refuse_cuda(id.to_string());
  return std::make_unique<kernels::HostDevice>(simt::ExecutorOptions{.workers = threads});
}

std::unique_ptr<nn::Backend> make_backend(const std::string& name, const kernels::Device& device, unsigned threads) {
  if (name == "reference") return std::make_unique<nn::ReferenceBackend>(device);
  if (name == "auto" || name == "cpu") return std::make_unique<nn::CpuBackend>(device, threads);
  throw UsageError("there is no backend '" + name + "': there are reference and cpu");
}

}  // namespace gradring::train
