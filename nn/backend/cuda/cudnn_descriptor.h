// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nn/backend/cuda/cudnn_api.h"

namespace gradring::nn {

/// A descriptor of cuDNN's backend API: a bag of attributes that is finished once and read-only from then on. Move-only.
/// cuDNN copies what it needs of a descriptor that it is given, so these may be destroyed in any order; the API table and the
/// memory behind pointers must live on.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return handle_.get(); }

  /// Errors    CudnnError if the attribute does not belong here, or not with this type.
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                       const void* values);
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, 1, &value);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const CudnnDescriptor> values);

  /// Errors    CudnnError if an attribute is missing, or cuDNN has no such thing.
  CudnnDescriptor& finalize();
  /// The same for what cuDNN may well not have: false instead of an error.
  bool try_finalize();

  std::int64_t int64(cudnnBackendAttributeName_t name) const;
  /// Empty if the attribute was never set.
  std::vector<cudnnBackendNumericalNote_t> numerical_notes() const;
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
