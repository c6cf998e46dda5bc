// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/nvidia_libraries.h"

#include <fmt/format.h>

#include "kernels/runtime/shared_library.h"

namespace gradring::train::doctor {
namespace {

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
  std::vector<const char*> files;  ///< the first that is there counts
  std::string (*version)(const SharedLibrary&);
  const char* advice;
};

Finding look_for(const Library& library, bool gpu_is_there) {
  for (const char* file : library.files) {
    try {
      const SharedLibrary opened(file, nvidia_library_folders());
      return {library.name, fmt::format("{} ({})", library.version(opened), opened.path())};
    } catch (const DeviceError&) {
      continue;  // not this one
    }
  }
  return {library.name, "none", gpu_is_there ? library.advice : ""};
}

}  // namespace

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
