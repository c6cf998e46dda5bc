// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "comm/transport/nccl/communicator.h"
#include "comm/transport/segment.h"
#include "kernels/runtime/device.h"

namespace gradring::comm::nccl {

/// Deregisters and frees memory from ncclMemAlloc.
struct FreeNcclMemory {
  std::shared_ptr<Communicator> communicator;
  void* registration = nullptr;
  void operator()(void* data) const;
};

/// Memory from ncclMemAlloc, which can be registered; move-only. Empty if ncclMemAlloc failed.
class NcclMemory {
 public:
  NcclMemory() = default;
  NcclMemory(std::shared_ptr<Communicator> communicator, std::size_t bytes);

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  explicit operator bool() const { return data_ != nullptr; }

  /// Registers it for zero-copy access by peers; false if NCCL cannot.
  bool register_it();

 private:
  std::unique_ptr<void, FreeNcclMemory> data_;
  std::size_t bytes_ = 0;
};

/// One rank's part of a segment: registered NCCL memory or plain device memory, the same kind on all ranks.
class NcclSegment final : public Segment {
 public:
  /// `number` is the segment's sequence number in its group, from 1.
  NcclSegment(NcclMemory memory, std::size_t bytes, std::uint64_t number)
      : Segment(memory.data(), bytes), memory_(std::move(memory)), number_(number) {}
  NcclSegment(kernels::Buffer memory, std::size_t bytes, std::uint64_t number)
      : Segment(memory.data(), bytes), buffer_(std::move(memory)), number_(number) {}

  std::uint64_t number() const { return number_; }
  bool is_registered() const { return static_cast<bool>(memory_); }

 private:
  NcclMemory memory_;
  kernels::Buffer buffer_;
  std::uint64_t number_;
};

}  // namespace gradring::comm::nccl
