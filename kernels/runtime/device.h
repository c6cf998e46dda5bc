// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/runtime/buffer.h"
#include "kernels/runtime/event.h"
#include "kernels/runtime/recording.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels {

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// What a user names on the command line: "cpu", "cuda", "cuda:1".
struct DeviceId {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  /// Errors    InvalidArgument if `text` is none of the spellings above.
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
  /// Errors    DeviceError if the memory is not there; says how much was asked for. Contents are undefined.
  virtual Buffer allocate(std::size_t bytes, MemoryKind kind = MemoryKind::device) = 0;
  virtual std::unique_ptr<Stream> make_stream(StreamMode mode) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Keeps what `enqueue_work` enqueues on `stream`, and on streams that it is joined with by events. On a GPU that is a
  /// CUDA graph (runtime/cuda/graph.h says what it may hold), and nothing runs yet; on a CPU the function itself, which
  /// every enqueue of the recording calls again.
  ///
  /// Errors    what `enqueue_work` throws; DeviceError if it cannot be recorded. The stream is then as it was before.
  virtual std::unique_ptr<Recording> record(Stream& stream, std::function<void()> enqueue_work) = 0;
};

}  // namespace gradring::kernels
