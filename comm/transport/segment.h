// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

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
  /// Its sequence number in its group, from 1.
  std::uint64_t number() const { return number_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 protected:
  Segment(std::byte* data, std::size_t bytes, std::uint64_t number) : data_(data), bytes_(bytes), number_(number) {}

 private:
  std::byte* data_;
  std::size_t bytes_;
  std::uint64_t number_;
};

/// A segment of which this rank holds only its own part. `Memory` frees that part.
template <class Memory>
class OwnSegment final : public Segment {
 public:
  OwnSegment(std::byte* data, Memory memory, std::size_t bytes, std::uint64_t number)
      : Segment(data, bytes, number), memory_(std::move(memory)) {}

 private:
  Memory memory_;
};

/// Host memory for a segment: `bytes` zero bytes, aligned to 64.
///
/// Errors    DeviceError if there is no memory.
std::shared_ptr<std::byte> zeroed_memory(std::size_t bytes);

/// A run of elements; the context says from where `offset` counts.
struct Slice {
  std::size_t offset = 0;
  std::size_t elements = 0;

  bool operator==(const Slice&) const = default;
};

/// Shard `index` of `elements` elements split into `world` consecutive shards: the first elements % world of them are
/// longer by one. A shard may be empty.
constexpr Slice shard_of(std::size_t elements, std::size_t world, std::size_t index) {
  const std::size_t base = elements / world;
  const std::size_t longer = elements % world;
  return {index * base + std::min(index, longer), base + (index < longer ? 1 : 0)};
}

/// The number of chunks of a slice of `elements`: at least one, because empty slices are sent too. chunk 0: no limit.
constexpr std::size_t chunk_count(std::size_t elements, std::size_t chunk) {
  if (chunk == 0 || elements == 0) return 1;
  return (elements - 1) / chunk + 1;
}

/// Chunk `index` of a slice; empty past its end, because slices of one collective differ in length by one.
constexpr Slice chunk_of(const Slice& slice, std::size_t chunk, std::size_t index) {
  if (chunk == 0) return slice;
  const std::size_t begin = std::min(index * chunk, slice.elements);
  return {slice.offset + begin, std::min(chunk, slice.elements - begin)};
}

/// The part of a segment that a collective works on: elements [slice.offset, slice.offset + slice.elements) of `dtype`.
struct SegmentRange {
  Segment* segment = nullptr;
  Slice slice;
  kernels::DType dtype = kernels::DType::f32;
};

}  // namespace gradring::comm
