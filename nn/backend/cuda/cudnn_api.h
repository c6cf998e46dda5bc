// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn_graph.h>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "nn/backend/cuda/cuda_libraries.h"

namespace gradring::nn {

/// The functions of cuDNN that we call, looked up when a backend is made, so that a machine without cuDNN can use the
/// rest. Tests replace them.
struct CudnnApi {
  LibraryFunctions from = {};
  decltype(&::cudnnGetVersion) get_version = from["cudnnGetVersion"];
  decltype(&::cudnnGetErrorString) get_error_string = from["cudnnGetErrorString"];
  decltype(&::cudnnGetLastErrorString) get_last_error_string = from["cudnnGetLastErrorString"];
  decltype(&::cudnnCreate) create = from["cudnnCreate"];
  decltype(&::cudnnDestroy) destroy = from["cudnnDestroy"];
  decltype(&::cudnnSetStream) set_stream = from["cudnnSetStream"];
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = from["cudnnBackendCreateDescriptor"];
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = from["cudnnBackendDestroyDescriptor"];
  decltype(&::cudnnBackendFinalize) finalize = from["cudnnBackendFinalize"];
  decltype(&::cudnnBackendSetAttribute) set_attribute = from["cudnnBackendSetAttribute"];
  decltype(&::cudnnBackendGetAttribute) get_attribute = from["cudnnBackendGetAttribute"];
  decltype(&::cudnnBackendExecute) execute = from["cudnnBackendExecute"];

  /// Errors    DeviceError if libcudnn.so.9 is missing or lacks one of them.
  static CudnnApi load();
};

/// Throws unless `status` is success. `call` is the name of the function that returned it.
///
/// Errors    DeviceError: the call, cuDNN's name for the error, its last error string, and the caller's location.
void cudnn_check(const CudnnApi& api, cudnnStatus_t status, std::string_view call,
                 std::source_location where = std::source_location::current());

/// A descriptor of cuDNN's backend API: attributes that are finalized once, then read-only. Move-only. cuDNN copies
/// what it needs of a descriptor, so they may be destroyed in any order; the API table and the memory behind pointers
/// must outlive them.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return handle_.get(); }

  /// Errors    DeviceError if the descriptor has no such attribute, or not of this type.
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                       const void* values);
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, 1, &value);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const CudnnDescriptor> values);

  /// Errors    DeviceError if an attribute is missing or unsupported.
  CudnnDescriptor& finalize();
  /// The same, but false instead of an error.
  bool try_finalize();

  std::int64_t int64(cudnnBackendAttributeName_t name) const;
  /// Empty if the attribute is not set.
  std::vector<cudnnBackendNumericalNote_t> numerical_notes() const;
  /// How many descriptors a heuristic has as its results. Of other attributes cuDNN does not tell.
  std::int64_t result_count() const;
  /// Descriptors of `type` that cuDNN fills, at most `most` of them.
  std::vector<CudnnDescriptor> descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                           std::int64_t most) const;

 private:
  struct Destroy {
    const CudnnApi* api;
    void operator()(cudnnBackendDescriptor_t handle) const noexcept { (void)api->destroy_descriptor(handle); }
  };
  const CudnnApi& api() const { return *handle_.get_deleter().api; }

  std::unique_ptr<void, Destroy> handle_;
};

}  // namespace gradring::nn
