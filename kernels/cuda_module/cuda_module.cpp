// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_module/cuda_module.h"

#include <dlfcn.h>

#include "kernels/cuda_module/door.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {

void CudaModule::Close::operator()(void* handle) const noexcept { ::dlclose(handle); }

CudaModule::CudaModule(const std::filesystem::path& file) : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_)
    throw DeviceError("cannot open the CUDA module: " + std::string(::dlerror()) +
                      "; build with GRADRING_CUDA=ON, or use --device cpu");
  const auto door = reinterpret_cast<CudaModuleDoor>(::dlsym(handle_.get(), kCudaModuleDoor));
  if (!door) throw DeviceError(file.string() + " is no CUDA module of gradring: build it again, beside this program");
  kernels_ = door();
}

}  // namespace gradring::kernels
