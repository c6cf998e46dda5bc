// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/accumulate/accumulate.h"
#include "kernels/runtime/device.h"

namespace gradring::comm::nccl {

/// Adds what was received into scratch to where it belongs, on a stream of its own, so that the next piece can travel
/// meanwhile. A few slots of scratch take turns; who is about to touch a sum, or to receive into a slot, waits for the adds
/// concerned, on the device, and for no others.
///
/// Threads   one thread at a time.
class Adder {
 public:
  Adder(kernels::Device& device, std::span<const kernels::accumulate::Variant> kernels, std::size_t slot_bytes);

  /// Where to receive what is to be added to `target`, next: what `stream` enqueues from now on may write it.
  std::byte* reserve(std::byte* target, std::size_t elements, kernels::DType dtype, kernels::Stream& stream);
  /// Adds all that was reserved, as soon as `stream` has received it.
  void add_reserved(kernels::Stream& stream);
  /// What `stream` enqueues from now on sees the sums in [data, data + bytes), and may write there.
  void wait_for(const std::byte* data, std::size_t bytes, kernels::Stream& stream);
  /// The same for all sums.
  void join(kernels::Stream& stream);

  /// The stream that the adds run on.
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
