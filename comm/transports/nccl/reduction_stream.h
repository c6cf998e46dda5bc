// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/runtime/device.h"

namespace gradring::comm::nccl {

/// Adds received data to its target on a separate stream, so that the next slice can be received meanwhile. Data is
/// received into a few scratch slots in turn. A stream that touches a sum or reuses a slot waits, on the device, only
/// for the adds concerned.
///
/// Threads   one thread at a time.
class ReductionStream {
 public:
  /// One to receive into, one to add from, and two spare ones for late events.
  static constexpr std::size_t kSlots = 4;

  ReductionStream(kernels::Device& device, std::span<const kernels::accumulate::Variant> kernels,
                  std::size_t slot_bytes);

  /// A scratch slot for data that will be added to `target`; work enqueued on `stream` from now on may write it. At
  /// most kSlots are reserved at once.
  std::byte* reserve(std::byte* target, std::size_t elements, kernels::DType dtype, kernels::Stream& stream);
  /// Enqueues the adds of all reserved slots after the work of `stream`.
  void add_reserved(kernels::Stream& stream);
  /// Orders later work of `stream` after the adds to [data, data + bytes).
  void wait_for(const std::byte* data, std::size_t bytes, kernels::Stream& stream);
  /// The same for all adds.
  void join(kernels::Stream& stream);

  kernels::Stream& stream() { return *stream_; }

 private:
  enum class State { free, reserved, adding };
  struct Slot {
    std::byte* scratch = nullptr;
    State state = State::free;
    kernels::accumulate::Args args;
    std::unique_ptr<kernels::Event> added;
  };
  static void wait_for(Slot& slot, kernels::Stream& stream);

  kernels::Device& device_;
  std::span<const kernels::accumulate::Variant> kernels_;
  std::size_t slot_bytes_;
  kernels::Buffer scratch_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  std::unique_ptr<kernels::Event> received_;
  std::unique_ptr<kernels::Stream> stream_;  // last: the destructor waits for it
};

}  // namespace gradring::comm::nccl
