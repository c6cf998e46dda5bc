// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/nvidia_driver.h"

#include <dlfcn.h>

#include <memory>

namespace gradring::train::doctor {
namespace {

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};

/// Calls a function of the driver's C interface, which returns 0 if all is well.
template <class... Parameters>
int call(void* library, const char* name, Parameters... arguments) {
  constexpr int kNotFound = -1;
  const auto function = reinterpret_cast<int (*)(Parameters...)>(::dlsym(library, name));
  return function ? function(arguments...) : kNotFound;
}

}  // namespace

std::optional<NvidiaDriver> find_nvidia_driver() {
  const std::unique_ptr<void, Close> library(::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL));
  if (!library) return std::nullopt;
  NvidiaDriver driver;
  call(library.get(), "cuDriverGetVersion", &driver.cuda_version);
  if (const int status = call(library.get(), "cuInit", 0u); status != 0) {
    const char* text = nullptr;
    call(library.get(), "cuGetErrorString", status, &text);
    driver.problem = text ? text : "error " + std::to_string(status);
    return driver;
  }
  call(library.get(), "cuDeviceGetCount", &driver.devices);
  return driver;
}

}  // namespace gradring::train::doctor
