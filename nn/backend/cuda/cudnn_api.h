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

namespace gradring::nn {

/// The functions of cuDNN that we call, looked up when a backend is made, so that a machine without cuDNN can use the
/// rest. Tests replace them.
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

  /// Errors    DeviceError if libcudnn.so.9 is missing or lacks one of them.
  static CudnnApi load();
};

/// A cuDNN error with its status.
class CudnnError : public DeviceError {
 public:
  CudnnError(cudnnStatus_t result, const std::string& message) : DeviceError(message), status(result) {}
  cudnnStatus_t status;
};

/// Throws unless `status` is success. `call` is the name of the function that returned it.
///
/// Errors    CudnnError: the call, cuDNN's name for the error, its last error string, and the caller's location.
void cudnn_check(const CudnnApi& api, cudnnStatus_t status, std::string_view call,
                 std::source_location where = std::source_location::current());

/// A descriptor of cuDNN's backend API: attributes that are finalized once, then read-only. Move-only. cuDNN copies
/// what it needs of a descriptor, so they may be destroyed in any order; the API table and the memory behind pointers
/// must outlive them.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return handle_.get(); }

  /// Errors    CudnnError if the descriptor has no such attribute, or not of this type.
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                       const void* values);
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, 1, &value);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const CudnnDescriptor> values);

  /// Errors    CudnnError if an attribute is missing or unsupported.
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
