// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/runtime/stream.h"

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

/// Work that can be enqueued again and again as one: Device::record makes it. It holds addresses, not memory: what the
/// work uses must outlive it.
///
/// Threads   one at a time.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Runs the whole once more, in the order of `stream`, which is the one that was recorded.
  ///
  /// Errors    DeviceError if it cannot be launched; on a CPU, what the work throws.
  virtual void enqueue(Stream& stream) = 0;
};

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// What a user names on the command line: "cpu", "cuda", "cuda:1".
struct DeviceId {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  /// Errors    InvalidArgument if `text` is not one of the spellings above.
  static DeviceId parse(std::string_view text);
  std::string to_string() const;
  bool operator==(const DeviceId&) const = default;
};

/// Who runs a stream's work. in_place: the caller, before enqueue returns (a GPU has no such thing and treats it as
/// asynchronous); asynchronous: the device, or a worker thread on the CPU.
enum class StreamMode : std::uint8_t { in_place, asynchronous };

enum class MemoryKind : std::uint8_t {
  device,  ///< what kernels read and write
  pinned,  ///< host memory that the device can copy from and to without a detour
};

/// A place where kernels run. Owns what its streams, events and buffers need, so it must outlive them all.
///
/// Threads   every member function may be called from any thread.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceId id() const = 0;
  /// One line for people: the processor's or card's name and its size.
  virtual std::string description() const = 0;
  /// Errors    DeviceError if the memory is not available, with the requested size. Contents are undefined.
  virtual Buffer allocate(std::size_t bytes, MemoryKind kind = MemoryKind::device) = 0;
  virtual std::unique_ptr<Stream> make_stream(StreamMode mode) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual std::unique_ptr<Timer> make_timer() = 0;
  /// Keeps what `enqueue_work` enqueues on `stream`, and on streams that it is joined with by events. On a GPU that is
  /// a CUDA graph (Graph in runtime/cuda/cuda_stream.h says what it may hold), and nothing runs yet; on a CPU the
  /// function itself, which every enqueue of the recording calls again.
  ///
  /// Errors    what `enqueue_work` throws; DeviceError if it cannot be recorded. The stream is then as it was before.
  virtual std::unique_ptr<Recording> record(Stream& stream, std::function<void()> enqueue_work) = 0;
};

}  // namespace gradring::kernels
