// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn_graph.h>

#include <source_location>
#include <string>
#include <string_view>

#include "kernels/runtime/error.h"

namespace gradring::nn {

/// The functions of cuDNN that we call. They are looked up when a backend is made, so that a machine without cuDNN has
/// all the rest; and a test can put its own in their place.
struct CudnnApi {
  decltype(&::cudnnGetVersion) get_version = nullptr;
  decltype(&::cudnnGetErrorString) get_error_string = nullptr;
  decltype(&::cudnnGetLastErrorString) get_last_error_string = nullptr;
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnDestroy) destroy = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;

  /// Errors    DeviceError if libcudnn.so.9 is not there, or lacks one of these.
  static CudnnApi load();
};

/// What cuDNN answered, for those who can go on without it.
class CudnnError : public DeviceError {
 public:
  CudnnError(cudnnStatus_t result, const std::string& message) : DeviceError(message), status(result) {}
  cudnnStatus_t status;
};

/// Throws unless `status` is success. `call` is the name of the function that returned it.
///
/// Errors    CudnnError: the call, cuDNN's name for the error, its last words, and the caller's place.
void cudnn_check(const CudnnApi& api, cudnnStatus_t status, std::string_view call,
                 std::source_location where = std::source_location::current());

}  // namespace gradring::nn
