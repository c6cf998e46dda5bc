// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>

#include "kernels/runtime/cuda/cuda_error.h"

namespace gradring::kernels {

/// Destroys a handle by `kDestroy`, a function of CUDA's, with the handle's device current: CUDA opens a context on the
/// current device for it, hundreds of megabytes, which is device 0 in a thread that never chose one.
template <auto kDestroy>
struct DestroyOnDevice {
  int index = 0;

  template <class Handle>
  void operator()(Handle handle) const noexcept {
    if (try_make_current(index)) (void)kDestroy(handle);
  }
};

/// The owner of a handle such as cudaStream_t: CudaHandle<cudaStream_t, cudaStreamDestroy> stream(handle, {index}).
///
/// Threads   any may destroy it.
template <class Handle, auto kDestroy>
using CudaHandle = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyOnDevice<kDestroy>>;

}  // namespace gradring::kernels
