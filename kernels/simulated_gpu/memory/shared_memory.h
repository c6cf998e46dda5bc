// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/memory/address_space.h"

namespace gradring::simulated_gpu {

/// What is wrong with an access to shared memory.
struct SharedFinding {
  enum class Problem : std::uint8_t {
    none,
    not_written,
    unordered_write,
    unordered_read,
    not_fenced,  ///< an asynchronous read of what was written without fence.proxy.async
  };
  Problem problem = Problem::none;
  Accessor other;  ///< whose access is not ordered with this one
};

/// The shared memory of a block: bytes, and for each granule (the smallest access of the kernel, 1 to 16 bytes) the
/// stamps of its last write and of the reads since then. A stamp says who accessed it and when; AccessClocks decides
/// whether an access that is made now is ordered after it. A stamp of an earlier block means: not written in this
/// one.
///
/// Threads   one.
/// Source    Flanagan, Freund: FastTrack, PLDI 2009.
class SharedMemory {
 public:
  /// Makes `bytes` of memory that nobody has written. `granule_bytes` is a power of two.
  void begin_block(std::size_t bytes, std::size_t granule_bytes, unsigned warps, bool checks_races);

  bool holds(std::uint64_t address, std::size_t bytes) const {
    return address >= kFirstSharedAddress && address + bytes <= kFirstSharedAddress + bytes_.size() &&
           address + bytes > address;
  }
  std::size_t bytes() const { return bytes_.size(); }
  std::byte* at(std::uint64_t address) { return bytes_.data() + (address - kFirstSharedAddress); }

  AccessClocks& clocks() { return clocks_; }

  /// Notes that `thread` reads or writes bytes that the memory holds.
  SharedFinding note_read(std::uint64_t address, std::size_t bytes, unsigned thread);
  SharedFinding note_write(std::uint64_t address, std::size_t bytes, unsigned thread);
  /// Both at once, by an operation that is atomic: atomics of other threads are not unordered with it.
  SharedFinding note_atomic(std::uint64_t address, std::size_t bytes, unsigned thread);

  /// The same for the threads of a warp at once, of accesses that nothing is wrong with; false: look at each of them,
  /// because something may be.
  bool note_warp_read(const std::uint64_t* addresses, Mask lanes, std::size_t bytes, unsigned warp);
  bool note_warp_write(const std::uint64_t* addresses, Mask lanes, std::size_t bytes, unsigned warp);

  /// The same for what a thread started when it had `knowledge`, and what happens now: a write by it (`mine` its
  /// stamp) or by the copy engine, and a read by tensor cores (with_own, for all warps of the warpgroup).
  using Knowledge = AccessClocks::Knowledge;
  SharedFinding note_late_write(std::uint64_t address, std::size_t bytes, unsigned thread, Stamp mine,
                                const Knowledge& knowledge);
  SharedFinding note_late_read(std::uint64_t address, std::size_t bytes, Stamp mine, const Knowledge& knowledge);

 private:
  std::span<Stamp> granules(std::vector<Stamp>& stamps, std::uint64_t address, std::size_t bytes) {
    const std::size_t offset = address - kFirstSharedAddress;
    const std::size_t first = offset >> granule_shift_;
    return {stamps.data() + first, ((offset + bytes - 1) >> granule_shift_) - first + 1};
  }
  template <unsigned kGranules>
  bool note_warp_read_of(const std::uint64_t* addresses, Mask lanes, unsigned warp);
  template <unsigned kGranules>
  bool note_warp_write_of(const std::uint64_t* addresses, Mask lanes, unsigned warp);
  SharedFinding unordered(std::span<const Stamp> stamps, unsigned thread, const Knowledge& knowledge,
                          SharedFinding::Problem problem) const;
  SharedFinding unordered_reads(std::uint64_t address, std::size_t bytes, unsigned thread, const Knowledge& knowledge);

  std::vector<std::byte> bytes_;
  unsigned granule_shift_ = 0;
  std::vector<Stamp> writes_;
  std::vector<Stamp> reads_;
  /// Of tensor cores, which read for several warpgroups: the last read by another one. Used from the first such read
  /// on.
  std::vector<Stamp> second_reads_;
  bool has_late_reads_ = false;
  AccessClocks clocks_;
};

inline SharedFinding SharedMemory::note_read(std::uint64_t address, std::size_t bytes, unsigned thread) {
  const Stamp known = clocks_.ordered_before(thread);
  Stamp lowest = ~Stamp{0};
  Stamp highest = 0;
  for (const Stamp write : granules(writes_, address, bytes)) {
    lowest = std::min(lowest, write);
    highest = std::max(highest, write);
  }
  if (lowest < clocks_.block_begin()) [[unlikely]]
    return {SharedFinding::Problem::not_written, {}};
  const Stamp mine = clocks_.stamp(thread);
  for (Stamp& read : granules(reads_, address, bytes)) read = read < known ? mine : merged(read, mine);
  if (highest >= known) [[unlikely]]
    return unordered(granules(writes_, address, bytes), thread, clocks_.knowledge(thread / kWarpSize),
                     SharedFinding::Problem::unordered_write);
  return {};
}

inline SharedFinding SharedMemory::note_write(std::uint64_t address, std::size_t bytes, unsigned thread) {
  return note_late_write(address, bytes, thread, clocks_.stamp(thread), clocks_.knowledge(thread / kWarpSize));
}

inline SharedFinding SharedMemory::note_late_write(std::uint64_t address, std::size_t bytes, unsigned thread,
                                                   Stamp mine, const Knowledge& knowledge) {
  const std::span<Stamp> writes = granules(writes_, address, bytes);
  const std::span<const Stamp> reads = granules(reads_, address, bytes);
  Stamp highest_write = 0;
  Stamp highest_read = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    highest_write = std::max(highest_write, writes[i]);
    highest_read = std::max(highest_read, reads[i]);
  }
  if (has_late_reads_)
    for (const Stamp read : granules(second_reads_, address, bytes)) highest_read = std::max(highest_read, read);
  SharedFinding finding;
  if (highest_write >= knowledge.bound) [[unlikely]]
    finding = unordered(writes, thread, knowledge, SharedFinding::Problem::unordered_write);
  if (highest_read >= knowledge.bound && finding.problem == SharedFinding::Problem::none) [[unlikely]]
    finding = unordered_reads(address, bytes, thread, knowledge);
  std::ranges::fill(writes, mine);
  return finding;
}

}  // namespace gradring::simulated_gpu
