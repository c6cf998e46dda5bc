// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/shared_library.h"
#include "kernels/lib/variant.h"
#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/backend/cuda/cuda_backend_options.h"

namespace gradring::nn {

/// Makes `device` current for this thread's calls of NVIDIA's libraries. Does nothing for a CPU, which tests use.
inline void make_current(const kernels::Device& device) {
  if (device.id().kind == kernels::DeviceKind::cuda) kernels::make_current(device.id().index);
}

/// A library's handle, which owns it.
template <class Handle>
using LibraryHandle = std::unique_ptr<std::remove_pointer_t<Handle>, std::function<void(Handle)>>;

/// Makes a handle on `device`; `check` gets the status of `create`. The handle is destroyed with its device current on
/// whatever thread. If the device cannot be made current, as after a failure, it is not destroyed: on another device
/// that would be wrong, and nothing of the failed one is left to free.
template <class Handle, class Status, class Check>
LibraryHandle<Handle> make_handle(const kernels::Device& device, Status (*create)(Handle*), Status (*destroy)(Handle),
                                  const Check& check) {
  make_current(device);
  Handle handle = nullptr;
  check(create(&handle));
  return {handle, [destroy, id = device.id()](Handle made) {
            if (id.kind != kernels::DeviceKind::cuda || kernels::try_make_current(id.index)) (void)destroy(made);
          }};
}

/// A library's functions by their names, as initializers of a table of pointers to them. Without a library all are
/// null: tests set them.
class LibraryFunctions {
 public:
  LibraryFunctions() = default;
  explicit LibraryFunctions(const std::string& file_name)
      : library_(std::make_shared<SharedLibrary>(file_name, nvidia_library_folders())) {}

  /// Converts to a pointer to the function, of whatever type the table says.
  ///
  /// Errors    DeviceError if the library lacks it.
  auto operator[](const char* name) const { return Found{library_.get(), name}; }

 private:
  struct Found {
    const SharedLibrary* library;
    const char* name;

    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      Function* function = nullptr;
      if (library) library->find(name, function);
      return function;
    }
  };

  std::shared_ptr<const SharedLibrary> library_;
};

/// Our kernels for what a library does not fuse.
struct HelperKernels {
  kernels::bias::Variant bias;
  kernels::relu::Variant relu;
  kernels::cast::Variant cast;

  static HelperKernels pick(const kernels::KernelSet& kernels, const kernels::Device& device, kernels::DType dtype) {
    return {.bias = kernels::pick_variant(kernels.bias, device, dtype),
            .relu = kernels::pick_variant(kernels.relu, device, dtype),
            .cast = kernels::pick_variant(kernels.cast, device, dtype)};
  }
};

/// cuDNN on one device (cudnn.h); null if this build has none (no_cudnn.cpp).
class Cudnn;

/// Opens cuDNN, to be shared by plans.
///
/// Errors    DeviceError if it is missing or does not start; says what to install.
std::shared_ptr<Cudnn> open_cudnn(kernels::Device& device, const CudaBackendOptions& options);

/// A convolution in any number of groups, with or without bias, and a ReLU right after it by cuDNN; null if cuDNN has no engine for one of the passes that
/// NodeSpec::backward asks for. Our kernels add the bias if no engine does, compute the ReLU, and convert dw to f32 if
/// cuDNN gives it in 16 bits only, as cuDNN 9.19 does.
///
/// Numerics  within the bounds of kernels/ops/conv2d, but for dw: in f16 and bf16 it is rounded to that type first, so in
///           f16 a dw of 65520 or more, loss scale included, overflows. Deterministic where cuDNN has such an engine.
std::unique_ptr<Plan> plan_cudnn_conv2d(std::span<const NodeSpec> nodes, std::shared_ptr<Cudnn> cudnn,
                                        const HelperKernels& helpers);

/// Enqueues one pass with fixed arguments.
using EnqueuedPass = std::function<void(kernels::Stream&)>;

/// Single passes of a convolution by cuDNN, with the contracts of kernels/ops/conv2d, for benchmarks. Empty if cuDNN
/// has no engine. `device` must outlive the pass.
///
/// Errors    DeviceError if it cannot be enqueued.
EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device,
                        const kernels::conv2d::ForwardArgs& args);
EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const kernels::conv2d::DgradArgs& args);
/// Also empty if cuDNN gives dw in 16 bits only, which the contract's rounding excludes: of 16-bit types cuDNN 9.19
/// gives no other. Cannot accumulate.
EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const kernels::conv2d::WgradArgs& args);

class CublasLt;

/// A linear layer, with or without bias, by cuBLASLt and a ReLU right after it; null if cuBLASLt has no algorithm for one of the products. The
/// bias and its gradient are epilogues where cuBLASLt supports them, else our kernels compute them, as they do the ReLU.
///
/// Numerics  sums in f32; f32 factors are not rounded to TF32; dw and db are f32. Every run uses the same algorithm.
std::unique_ptr<Plan> plan_cublaslt_linear(std::span<const NodeSpec> nodes, std::shared_ptr<CublasLt> cublas,
                                           const HelperKernels& helpers);

}  // namespace gradring::nn
