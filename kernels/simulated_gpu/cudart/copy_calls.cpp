// SPDX-License-Identifier: Apache-2.0
// Copies and clearing.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

namespace {

/// Of a copy or a clearing, besides its bytes.
constexpr double kLeastSeconds = 1e-6;

std::uint64_t address_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// The block with these bytes; null for pageable memory of the host.
///
/// Errors    IllegalAccess if they are not within one block, or of one that is not there.
const GlobalMemory::Block* block_of(Runtime& rt, const void* address, std::size_t bytes, const char* what) {
  if (const GlobalMemory::Block* block = rt.memory.find(address_of(address), bytes)) return block;
  const MappedRanges::State state = rt.addresses.state_of(address);
  if (state == MappedRanges::State::unknown) return nullptr;
  const bool is_early = state == MappedRanges::State::live && !rt.memory.find(rt.addresses.begin_of(address), 1);
  throw IllegalAccess(joined(what, " ", rt.memory.describe(address_of(address), bytes),
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
  void require_unchanged(const Runtime& rt) const {
    if (writer(rt) == writer_ && std::hash<std::string_view>{}(bytes_) != hash_)
      throw IllegalAccess("cudaMemcpyAsync reads " + rt.memory.describe(address_of(bytes_.data()), bytes_.size()) +
                          ", which the host changed after the call: wait for the copy before the buffer is used again");
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

double copy(Runtime& rt, void* to, const void* from, std::size_t bytes, const Card& card, CountedWork* counted) {
  rt.copy_targets.end(address_of(to), bytes);
  const GlobalMemory::Block* const source = block_of(rt, from, bytes, "cudaMemcpyAsync reads");
  const GlobalMemory::Block* const target = block_of(rt, to, bytes, "cudaMemcpyAsync writes");
  if (overlap(address_of(to), address_of(from), bytes))
    throw IllegalAccess("cudaMemcpyAsync copies between overlapping ranges: " +
                        rt.memory.describe(address_of(to), bytes));
  rt.memory.note_use(address_of(from), bytes, false, "cudaMemcpyAsync");
  rt.memory.note_use(address_of(to), bytes, true, "cudaMemcpyAsync");
  std::memcpy(to, from, bytes);
  carry_written(rt, target, address_of(to), source, address_of(from), bytes);
  const bool within_device =
      source && target && !source->is_pinned_host && !target->is_pinned_host && source->device == target->device;
  const double bytes_per_second = within_device ? card.bytes_per_second / 2 : card.host_bytes_per_second;
  count(counted, bytes, bytes_per_second);
  return kLeastSeconds + static_cast<double>(bytes) / bytes_per_second;
}

double set(Runtime& rt, void* to, int value, std::size_t bytes, const Card& card, CountedWork* counted) {
  const GlobalMemory::Block* const block = block_of(rt, to, bytes, "cudaMemsetAsync writes");
  if (!block) throw IllegalAccess("cudaMemsetAsync writes pageable memory of the host, which no GPU reaches");
  rt.memory.note_use(address_of(to), bytes, true, "cudaMemsetAsync");
  std::memset(to, value, bytes);
  if (!block->is_pinned_host) rt.memory.mark_written(address_of(to), bytes);
  count(counted, bytes, card.bytes_per_second);
  return kLeastSeconds + static_cast<double>(bytes) / card.bytes_per_second;
}

bool is_on_host(const Runtime& rt, const void* address) {
  const GlobalMemory::Block* const block = rt.memory.find(address_of(address), 1);
  return block ? block->is_pinned_host : rt.addresses.state_of(address) == MappedRanges::State::unknown;
}

/// The kind that a program states must be that of the addresses. Memory that is not there yet is not judged.
void check_kind(const Runtime& rt, const void* to, const void* from, cudaMemcpyKind kind) {
  const auto require = [](bool condition, const char* what) {
    if (!condition) throw Misuse{cudaErrorInvalidValue, what};
  };
  if (kind == cudaMemcpyDefault) return;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  require(is_on_host(rt, to) == to_host, "a target that is not where the kind of the copy says");
  require(is_on_host(rt, from) == from_host, "a source that is not where the kind of the copy says");
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

bool is_pageable(const Runtime& rt, const void* address) {
  return rt.addresses.state_of(address) == MappedRanges::State::unknown;
}

StreamWork copying(Runtime& rt, void* to, std::size_t bytes, int device, std::function<double(CountedWork*)> run) {
  StreamWork work{.run = std::move(run), .kind = CountedWork::Kind::copy, .name = "cudaMemcpyAsync"};
  if (rt.options.checks_races && is_on_host(rt, to) && !is_pageable(rt, to))
    work.enqueued = [&rt, to, target = CopyTargets::Target{address_of(to), bytes, device}] {
      if (rt.addresses.state_of(to) == MappedRanges::State::live) rt.copy_targets.begin(target);
    };
  return work;
}

}  // namespace

extern "C" {

/// Pageable memory: CUDA reads it before the call returns, and may wait for the stream; a copy to it is done when the call
/// returns. A graph holds the address.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  return call("cudaMemcpyAsync", [&](Call& call) {
    Stream& stream = call.stream(handle);
    Runtime& rt = call.rt;
    const Card& card = call.on(stream.device).card();
    if (bytes == 0) return;
    if (!to || !from) throw Misuse{cudaErrorInvalidValue, "a null pointer"};
    check_range(rt, to, bytes);
    check_range(rt, from, bytes);
    check_kind(rt, to, from, kind);
    std::function<double(CountedWork*)> run;
    if (is_pageable(rt, from) && !stream.capture) {
      const auto* const begin = static_cast<const std::byte*>(from);
      const auto staged = std::make_shared<const std::vector<std::byte>>(begin, begin + bytes);
      run = [&rt, to, staged, &card](CountedWork* counted) {
        return copy(rt, to, staged->data(), staged->size(), card, counted);
      };
    } else if (rt.options.checks_races && is_on_host(rt, from) && !stream.capture) {
      run = [&rt, to, source = PinnedSource(rt, from, bytes), from, bytes, &card](CountedWork* counted) {
        source.require_unchanged(rt);
        return copy(rt, to, from, bytes, card, counted);
      };
    } else {
      run = [&rt, to, from, bytes, &card](CountedWork* counted) { return copy(rt, to, from, bytes, card, counted); };
    }
    rt.enqueue(stream, copying(rt, to, bytes, stream.device, std::move(run)));
    if (!is_pageable(rt, to) || stream.capture) return;
    const Scheduler::WorkPtr copied = stream.tail;
    call.lock.unlock();
    rt.scheduler.wait(copied);
    call.lock.lock();
    call.on(stream.device);  // the copy may have failed
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  return call("cudaMemsetAsync", [&](Call& call) {
    Stream& stream = call.stream(handle);
    Runtime& rt = call.rt;
    const Card& card = call.on(stream.device).card();
    if (bytes == 0) return;
    if (!to) throw Misuse{cudaErrorInvalidValue, "a null pointer"};
    check_range(rt, to, bytes);
    rt.enqueue(stream, {.run = [&rt, to, value, bytes,
                                &card](CountedWork* counted) { return set(rt, to, value, bytes, card, counted); },
                        .kind = CountedWork::Kind::clear,
                        .name = "cudaMemsetAsync"});
  });
}
}
