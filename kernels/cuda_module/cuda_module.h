// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "kernels/kernel_set.h"

namespace gradring::kernels {

/// libgradring_cuda.so, opened: nvcc's copy of every kernel. Opening it needs neither a GPU nor its driver; launching does.
/// The tables point into the module, so it must outlive whoever holds them.
///
/// Errors    DeviceError if the file is not there, or is no module of this build: says what to do.
/// Example   tests/kernels/cuda_module/cuda_module_test.cpp
class CudaModule {
 public:
  explicit CudaModule(const std::filesystem::path& file);

  const KernelSet& kernels() const { return *kernels_; }

 private:
  struct Close {
    void operator()(void* handle) const noexcept;
  };
  std::unique_ptr<void, Close> handle_;
  const KernelSet* kernels_ = nullptr;
};

}  // namespace gradring::kernels
