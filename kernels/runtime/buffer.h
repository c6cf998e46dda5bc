// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace gradring::kernels {

/// Owner of one block of memory on a device or on the host; move-only. Who allocated it frees it: the allocator's
/// resource must outlive the buffer, enqueued work that uses it must not. An empty one has size 0 and a null pointer.
class Buffer {
 public:
  /// Frees one block of memory; called once, never throws.
  class Resource {
   public:
    virtual ~Resource() = default;
    virtual void release(void* data, std::size_t bytes) noexcept = 0;
  };

  Buffer() = default;
  /// Takes ownership of `data`, which `resource` will release.
  Buffer(void* data, std::size_t bytes, Resource& resource) : data_(data, Release{&resource, bytes}), bytes_(bytes) {}

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }
  /// Size in bytes.
  std::size_t size() const { return bytes_; }

 private:
  struct Release {
    Resource* resource;
    std::size_t bytes;
    void operator()(void* data) const noexcept { resource->release(data, bytes); }
  };
  std::unique_ptr<void, Release> data_{nullptr, Release{nullptr, 0}};
  std::size_t bytes_ = 0;
};

}  // namespace gradring::kernels
