// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include "comm/transport/segment.h"
#include "kernels/runtime/error.h"

namespace gradring::comm {

/// A segment of which this rank holds only its own part.
class TcpSegment final : public Segment {
 public:
  /// `number` is the segment's sequence number in its group, from 1.
  ///
  /// Errors    DeviceError if there is no memory.
  static std::unique_ptr<TcpSegment> create(std::size_t bytes, std::size_t number) {
    Memory memory(static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow)));
    check<DeviceError>(memory != nullptr, "cannot allocate a segment of " + std::to_string(bytes) +
                                              " bytes: out of memory; use smaller buckets");
    std::memset(memory.get(), 0, bytes);
    return std::unique_ptr<TcpSegment>(new TcpSegment(std::move(memory), bytes, number));
  }

  std::size_t number() const { return number_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  TcpSegment(Memory memory, std::size_t bytes, std::size_t number)
      : Segment(memory.get(), bytes), memory_(std::move(memory)), number_(number) {}

  Memory memory_;
  std::size_t number_;
};

}  // namespace gradring::comm
