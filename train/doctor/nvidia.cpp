// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/nvidia.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>

#include "kernels/runtime/shared_library.h"

namespace gradring::train::doctor {
namespace {

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};

/// Calls a function of the driver's C interface, which returns 0 on success.
template <class... Parameters>
int call(void* library, const char* name, Parameters... arguments) {
  constexpr int kNotFound = -1;
  const auto function = reinterpret_cast<int (*)(Parameters...)>(::dlsym(library, name));
  return function ? function(arguments...) : kNotFound;
}

/// 91900 with steps of 10000 and 100 is 9.19.0.
std::string dotted(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string cudnn_version(const SharedLibrary& library) {
  std::size_t (*get_version)() = nullptr;
  library.find("cudnnGetVersion", get_version);
  return dotted(get_version());
}

std::string cublas_version(const SharedLibrary& library) {
  std::size_t (*get_version)() = nullptr;
  library.find("cublasLtGetVersion", get_version);
  return dotted(get_version());
}

std::string nccl_version(const SharedLibrary& library) {
  int (*get_version)(int*) = nullptr;
  library.find("ncclGetVersion", get_version);
  int version = 0;
  get_version(&version);
  return dotted(static_cast<std::size_t>(version));
}

struct Library {
  const char* name;
  std::vector<const char*> files;  ///< the first that exists is used
  std::string (*version)(const SharedLibrary&);
  const char* advice;
};

Finding look_for(const Library& library, bool gpu_is_there) {
  for (const char* file : library.files) {
    try {
      const SharedLibrary opened(file, nvidia_library_folders());
      return {library.name, fmt::format("{} ({})", library.version(opened), opened.path())};
    } catch (const DeviceError&) {
      continue;  // try the next
    }
  }
  return {library.name, "none", gpu_is_there ? library.advice : ""};
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

std::vector<Finding> nvidia_libraries(bool gpu_is_there) {
  const Library libraries[] = {
      {"cuDNN",
       {"libcudnn.so.9"},
       cudnn_version,
       "our own kernels compute every convolution: install cuDNN 9, or set CUDNN_PATH to its folder"},
      {"cuBLAS",
       {"libcublasLt.so.13", "libcublasLt.so.12"},
       cublas_version,
       "our own kernels compute every product: install the CUDA toolkit's cuBLAS, or set CUDA_HOME to its folder"},
      {"NCCL",
       {"libnccl.so.2"},
       nccl_version,
       "several GPUs cannot train together: install NCCL 2, or set NCCL_HOME to its folder"},
  };
  std::vector<Finding> findings;
  for (const Library& library : libraries) findings.push_back(look_for(library, gpu_is_there));
  return findings;
}

}  // namespace gradring::train::doctor
