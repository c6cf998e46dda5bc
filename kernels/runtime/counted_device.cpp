// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/counted_device.h"

#include <map>
#include <mutex>
#include <utility>

namespace gradring::kernels {

/// Keeps the buffers of the underlying device until their users free them.
class CountedDevice::Memory final : public Buffer::Resource {
 public:
  explicit Memory(MemoryCounter& counter) : counter_(counter) {}

  Buffer wrap(Buffer buffer) {
    void* const data = buffer.data();
    const std::size_t bytes = buffer.size();
    {
      const std::lock_guard lock(mutex_);
      buffers_.emplace(data, std::move(buffer));
    }
    counter_.add(bytes);
    return {data, bytes, *this};
  }

  void release(void* data, std::size_t bytes) noexcept override {
    counter_.remove(bytes);
    const std::lock_guard lock(mutex_);
    buffers_.erase(data);
  }

 private:
  MemoryCounter& counter_;
  std::mutex mutex_;
  std::map<void*, Buffer> buffers_;
};

CountedDevice::CountedDevice(Device& device, MemoryCounter& counter)
    : device_(device), memory_(std::make_unique<Memory>(counter)) {}

CountedDevice::~CountedDevice() = default;

Buffer CountedDevice::allocate(std::size_t bytes, MemoryKind kind) {
  Buffer buffer = device_.allocate(bytes, kind);
  if (kind != MemoryKind::device || buffer.size() == 0) return buffer;
  return memory_->wrap(std::move(buffer));
}

}  // namespace gradring::kernels
