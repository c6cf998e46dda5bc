// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradring::simulated_gpu {
namespace {

/// Of a copy or a clearing, besides its bytes.
constexpr double kLeastSeconds = 1e-6;

std::uint64_t address_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

const std::byte* at(const void* address, std::size_t offset) { return static_cast<const std::byte*>(address) + offset; }
std::byte* at(void* address, std::size_t offset) { return static_cast<std::byte*>(address) + offset; }

/// Calls visit(row, slice) for each row.
template <class Visit>
void for_each_row(const CopyShape& shape, const Visit& visit) {
  for (std::size_t slice = 0; slice < shape.slices; ++slice)
    for (std::size_t row = 0; row < shape.rows; ++row) visit(row, slice);
}

std::size_t offset_in(const Pitch& pitch, std::size_t row, std::size_t slice) {
  return row * pitch.row + slice * pitch.slice;
}

/// From the first byte to the end of the last row.
///
/// Errors    Misuse if a size_t does not hold it.
std::size_t extent_of(const CopyShape& shape, const Pitch& pitch) {
  if (shape.is_empty()) return 0;
  std::size_t rows = 0, slices = 0, extent = 0;
  if (__builtin_mul_overflow(shape.rows - 1, pitch.row, &rows) ||
      __builtin_mul_overflow(shape.slices - 1, pitch.slice, &slices) || __builtin_add_overflow(rows, slices, &extent) ||
      __builtin_add_overflow(extent, shape.bytes, &extent))
    throw Misuse{cudaErrorInvalidValue, joined(shape.bytes, " x ", shape.rows, " x ", shape.slices,
                                               " bytes with a pitch of ", pitch.row, ", which are too many")};
  return extent;
}

std::size_t bytes_of(const CopyShape& shape) { return shape.bytes * shape.rows * shape.slices; }

/// The block with these bytes; null for pageable memory of the host.
///
/// Errors    IllegalAccess if they are not within one block, or of one that is not there.
const GlobalMemory::Block* block_of(Runtime& rt, const void* address, std::size_t bytes, const char* name,
                                    const char* verb) {
  if (const GlobalMemory::Block* block = rt.memory.find(address_of(address), bytes)) return block;
  const MappedRanges::State state = rt.addresses.state_of(address);
  if (state == MappedRanges::State::unknown) return nullptr;
  const bool is_early = state == MappedRanges::State::live && !rt.memory.find(rt.addresses.begin_of(address), 1);
  throw IllegalAccess(joined(name, verb, rt.memory.describe(address_of(address), bytes),
                             (is_early ? ", before the stream of cudaMallocFromPoolAsync has allocated it" : "")));
}

bool overlap(std::uint64_t a, std::uint64_t b, std::size_t bytes) { return a < b + bytes && b < a + bytes; }

/// Device memory knows which of its bytes were written: those that a copy brings are, if they were where it took them.
void carry_written(Runtime& rt, const GlobalMemory::Block* to, std::uint64_t to_address,
                   const GlobalMemory::Block* from, std::uint64_t from_address, std::size_t bytes) {
  if (!to || to->is_pinned_host) return;
  if (!from || from->is_pinned_host) return rt.memory.mark_written(to_address, bytes);
  std::memcpy(&to->written[to_address - to->address], &from->written[from_address - from->address], bytes);
}

/// What the host must not change between the call of a copy and its end: the bytes of a pinned source.
class PinnedSource {
 public:
  PinnedSource(const Runtime& rt, const void* data, std::size_t bytes)
      : bytes_(static_cast<const char*>(data), bytes),
        hash_(std::hash<std::string_view>{}(bytes_)),
        writer_(writer(rt)) {}

  /// Errors    IllegalAccess if they are not what they were, and no work of a device wrote there.
  void require_unchanged(const Runtime& rt, const char* name) const {
    if (writer(rt) == writer_ && std::hash<std::string_view>{}(bytes_) != hash_)
      throw IllegalAccess(joined(name, " reads ", rt.memory.describe(address_of(bytes_.data()), bytes_.size()),
                                 ", which the host changed after the call: wait for the copy before the buffer is "
                                 "used again"));
  }

 private:
  std::uint32_t writer(const Runtime& rt) const {
    return rt.memory.newest_writer(address_of(bytes_.data()), bytes_.size());
  }

  std::string_view bytes_;
  std::size_t hash_;
  std::uint32_t writer_;
};

void count(CountedWork* counted, std::size_t bytes, double bytes_per_second) {
  if (!counted) return;
  counted->bytes = bytes;
  counted->bound_seconds = static_cast<double>(bytes) / bytes_per_second;
}

/// Copies a row; returns the bytes per second of the way that it takes.
double copy_row(Runtime& rt, const char* name, void* to, const void* from, std::size_t bytes, const Card& card) {
  rt.host_uses.end(address_of(to), bytes);
  const GlobalMemory::Block* const source = block_of(rt, from, bytes, name, " reads ");
  const GlobalMemory::Block* const target = block_of(rt, to, bytes, name, " writes ");
  if (overlap(address_of(to), address_of(from), bytes))
    throw IllegalAccess(
        joined(name, " copies between overlapping ranges: ", rt.memory.describe(address_of(to), bytes)));
  rt.memory.note_use(address_of(from), bytes, false, name);
  rt.memory.note_use(address_of(to), bytes, true, name);
  std::memcpy(to, from, bytes);
  carry_written(rt, target, address_of(to), source, address_of(from), bytes);
  const bool within_device =
      source && target && !source->is_pinned_host && !target->is_pinned_host && source->device == target->device;
  return within_device ? card.bytes_per_second / 2 : card.host_bytes_per_second;
}

double copy_now(Runtime& rt, const CopySpec& spec, const Card& card, CountedWork* counted) {
  double bytes_per_second = card.bytes_per_second;
  if (spec.shape.is_empty()) return kLeastSeconds;
  for_each_row(spec.shape, [&](std::size_t row, std::size_t slice) {
    bytes_per_second = copy_row(rt, spec.name, at(spec.to, offset_in(spec.to_pitch, row, slice)),
                                at(spec.from, offset_in(spec.from_pitch, row, slice)), spec.shape.bytes, card);
  });
  count(counted, bytes_of(spec.shape), bytes_per_second);
  return kLeastSeconds + static_cast<double>(bytes_of(spec.shape)) / bytes_per_second;
}

/// Repeats the lower bytes of a value.
void fill(std::byte* to, std::size_t bytes, unsigned value, unsigned element_bytes) {
  if (element_bytes == 1) {
    std::memset(to, static_cast<int>(value), bytes);
    return;
  }
  for (std::size_t i = 0; i + element_bytes <= bytes; i += element_bytes) std::memcpy(to + i, &value, element_bytes);
}

double clear_now(Runtime& rt, const ClearSpec& spec, const Card& card, CountedWork* counted) {
  const std::size_t bytes = spec.shape.bytes;
  if (spec.shape.is_empty()) return kLeastSeconds;
  for_each_row(spec.shape, [&](std::size_t row, std::size_t slice) {
    std::byte* const to = at(spec.to, offset_in(spec.pitch, row, slice));
    const GlobalMemory::Block* const block = block_of(rt, to, bytes, spec.name, " writes ");
    if (!block) throw IllegalAccess(joined(spec.name, " writes pageable memory of the host, which no GPU reaches"));
    rt.memory.note_use(address_of(to), bytes, true, spec.name);
    fill(to, bytes, spec.value, spec.element_bytes);
    if (!block->is_pinned_host) rt.memory.mark_written(address_of(to), bytes);
  });
  count(counted, bytes_of(spec.shape), card.bytes_per_second);
  return kLeastSeconds + static_cast<double>(bytes_of(spec.shape)) / card.bytes_per_second;
}

bool is_on_host(const Runtime& rt, const void* address) {
  const GlobalMemory::Block* const block = rt.memory.find(address_of(address), 1);
  return block ? block->is_pinned_host : rt.addresses.state_of(address) == MappedRanges::State::unknown;
}

bool is_pageable(const Runtime& rt, const void* address) {
  if (rt.addresses.state_of(address) != MappedRanges::State::unknown) return false;
  const Allocation* const registered = rt.allocation_of(address);
  return registered == nullptr || registered->is_freed;
}

/// The kind that a program states must be that of the addresses. Memory that is not there yet is not judged, nor is
/// managed memory, which is anywhere.
void check_kind(const Runtime& rt, const CopySpec& spec) {
  if (spec.kind == cudaMemcpyDefault) return;
  const auto require = [&](const void* address, bool on_host, const char* what) {
    const Allocation* const block = rt.allocation_of(address);
    if (block != nullptr && block->kind == Allocation::Kind::managed) return;
    if (is_on_host(rt, address) != on_host)
      throw Misuse{cudaErrorInvalidValue, joined("a ", what, " that is not where the kind of the copy says")};
  };
  require(spec.to, spec.kind == cudaMemcpyDeviceToHost || spec.kind == cudaMemcpyHostToHost, "target");
  require(spec.from, spec.kind == cudaMemcpyHostToDevice || spec.kind == cudaMemcpyHostToHost, "source");
}

/// CUDA knows how large its blocks are, and refuses what goes beyond.
void check_range(const Runtime& rt, const void* address, std::size_t bytes) {
  const auto next = rt.allocations.upper_bound(const_cast<void*>(address));
  if (next == rt.allocations.begin()) return;
  const auto& [begin, block] = *std::prev(next);
  const std::uint64_t offset = address_of(address) - address_of(begin);
  if (offset >= block.bytes || bytes <= block.bytes - offset) return;
  throw Misuse{cudaErrorInvalidValue,
               joined(bytes, " bytes, from ", offset, " bytes into a block of ", block.bytes, " bytes")};
}

void check_pitch(const CopyShape& shape, const Pitch& pitch) {
  if (shape.rows > 1 && shape.bytes > pitch.row)
    throw Misuse{cudaErrorInvalidPitchValue,
                 joined("rows of ", shape.bytes, " bytes with a pitch of ", pitch.row, " bytes")};
}

void check(const Runtime& rt, const CopySpec& spec) {
  if (!spec.to || !spec.from) throw Misuse{cudaErrorInvalidValue, "a null pointer"};
  check_pitch(spec.shape, spec.to_pitch);
  check_pitch(spec.shape, spec.from_pitch);
  check_range(rt, spec.to, extent_of(spec.shape, spec.to_pitch));
  check_range(rt, spec.from, extent_of(spec.shape, spec.from_pitch));
  check_kind(rt, spec);
}

void check(const Runtime& rt, const ClearSpec& spec) {
  if (!spec.to) throw Misuse{cudaErrorInvalidValue, "a null pointer"};
  check_pitch(spec.shape, spec.pitch);
  check_range(rt, spec.to, extent_of(spec.shape, spec.pitch));
}

/// `spec` with its source copied to where the host cannot change it.
std::function<double(CountedWork*)> copy_staged(Runtime& rt, CopySpec spec, const Card& card) {
  const auto staged = std::make_shared<std::vector<std::byte>>();
  staged->reserve(bytes_of(spec.shape));
  for_each_row(spec.shape, [&](std::size_t row, std::size_t slice) {
    const std::byte* const begin = at(spec.from, offset_in(spec.from_pitch, row, slice));
    staged->insert(staged->end(), begin, begin + spec.shape.bytes);
  });
  spec.from = staged->data();
  spec.from_pitch = {.row = spec.shape.bytes, .slice = spec.shape.bytes * spec.shape.rows};
  return [&rt, spec, staged, &card](CountedWork* counted) { return copy_now(rt, spec, card, counted); };
}

}  // namespace

CopySpec copy_spec(const char* name, const cudaMemcpy3DParms& parameters) {
  if (parameters.srcArray || parameters.dstArray)
    throw Misuse{cudaErrorNotSupported, "a CUDA array, which is not simulated, as textures are not"};
  const auto begin = [](const cudaPitchedPtr& data, const cudaPos& position) -> void* {
    return static_cast<char*>(data.ptr) + position.x + data.pitch * (position.y + data.ysize * position.z);
  };
  const auto pitch = [](const cudaPitchedPtr& data) { return Pitch{data.pitch, data.pitch * data.ysize}; };
  return {.name = name,
          .to = begin(parameters.dstPtr, parameters.dstPos),
          .to_pitch = pitch(parameters.dstPtr),
          .from = begin(parameters.srcPtr, parameters.srcPos),
          .from_pitch = pitch(parameters.srcPtr),
          .shape = {parameters.extent.width, parameters.extent.height, parameters.extent.depth},
          .kind = parameters.kind};
}

StreamWork copy_work(Runtime& rt, const CopySpec& spec, int device) {
  check(rt, spec);
  return {.run = [&rt, spec,
                  &card = rt.device(device).card()](CountedWork* counted) { return copy_now(rt, spec, card, counted); },
          .kind = CountedWork::Kind::copy,
          .name = spec.name};
}

/// Pageable memory: CUDA reads it before the call returns, and may wait for the stream; a copy to it is done when the
/// call returns. A graph holds the address.
void copy(Call& call, cudaStream_t handle, const CopySpec& spec) {
  Stream& stream = call.stream(handle);
  Runtime& rt = call.rt;
  const Card& card = call.on(stream.device).card();
  if (spec.waits) call.refuse_in_captures();
  if (spec.shape.is_empty()) return;
  StreamWork work = copy_work(rt, spec, stream.device);
  const bool to_pageable = is_pageable(rt, spec.to), from_pageable = is_pageable(rt, spec.from);
  const bool waits =
      !stream.capture && (to_pageable || (spec.waits && (is_on_host(rt, spec.to) || is_on_host(rt, spec.from))));
  if (from_pageable && !stream.capture && !waits) {
    work.run = copy_staged(rt, spec, card);
  } else if (rt.options.checks_races && is_on_host(rt, spec.from) && !stream.capture && spec.shape.is_range() &&
             !waits) {
    work.run = [run = std::move(work.run), &rt, source = PinnedSource(rt, spec.from, spec.shape.bytes),
                name = spec.name](CountedWork* counted) {
      source.require_unchanged(rt, name);
      return run(counted);
    };
  }
  if (rt.options.checks_races && is_on_host(rt, spec.to) && !to_pageable && spec.shape.is_range() && !waits)
    work.enqueued = [&rt, to = spec.to,
                     target = HostUses::Target{address_of(spec.to), spec.shape.bytes, stream.device}] {
      if (rt.addresses.state_of(to) == MappedRanges::State::live) rt.host_uses.begin(target);
    };
  rt.enqueue(stream, std::move(work));
  if (waits) call.wait_for(stream.tail, stream.device);
}

StreamWork clear_work(Runtime& rt, const ClearSpec& spec, int device) {
  check(rt, spec);
  return {.run = [&rt, spec, &card = rt.device(device).card()](
                     CountedWork* counted) { return clear_now(rt, spec, card, counted); },
          .kind = CountedWork::Kind::clear,
          .name = spec.name};
}

void clear(Call& call, cudaStream_t handle, const ClearSpec& spec) {
  Stream& stream = call.stream(handle);
  call.on(stream.device);
  if (spec.waits) call.refuse_in_captures();
  if (spec.shape.is_empty()) return;
  call.rt.enqueue(stream, clear_work(call.rt, spec, stream.device));
  if (spec.waits && is_on_host(call.rt, spec.to)) call.wait_for(stream.tail, stream.device);
}

}  // namespace gradring::simulated_gpu
