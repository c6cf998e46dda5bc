// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/dtype.h"

namespace gradring::comm {

/// One rank's part of memory that all ranks allocated together (Transport::allocate). Peers access it only through the
/// steps of a transport. The destructor frees this rank's part and its mappings of the others, without communication. A
/// segment may outlive its transport.
class Segment {
 public:
  virtual ~Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* data() const { return data_; }
  /// Size in bytes, as requested; equal on all ranks.
  std::size_t size() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 protected:
  Segment(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

 private:
  std::byte* data_;
  std::size_t bytes_;
};

/// A run of elements; the context says from where `offset` counts.
struct Slice {
  std::size_t offset = 0;
  std::size_t elements = 0;

  bool operator==(const Slice&) const = default;
};

/// The part of a segment that a collective works on: elements [slice.offset, slice.offset + slice.elements) of `dtype`.
struct SegmentRange {
  Segment* segment = nullptr;
  Slice slice;
  kernels::DType dtype = kernels::DType::f32;
};

}  // namespace gradring::comm
