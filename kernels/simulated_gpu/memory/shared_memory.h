// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/memory/shared_order.h"

namespace gradring::simulated_gpu {

/// The generic addresses of shared and local memory begin here: far from those of a process, whose upper bits are
/// zero. Generic addresses of global memory and of parameters are those of the host.
inline constexpr std::uint64_t kSharedWindow = 0x7e00'0000'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x7d00'0000'0000'0000;
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;

/// The first address of a block's shared memory within its state space: compute capability 9.0 keeps 1 KB for itself,
/// so that 0 is not an address that a kernel may use.
inline constexpr std::uint32_t kFirstSharedAddress = 1024;
/// The same for local memory.
inline constexpr std::uint32_t kFirstLocalAddress = 1024;

/// An address of shared::cluster: that of shared::cta, for the own block, or with the rank of another one plus 1 above
/// these bits.
inline constexpr unsigned kClusterRankShift = 24;
constexpr std::uint64_t cluster_address(unsigned rank, std::uint64_t address) {
  return std::uint64_t{rank + 1} << kClusterRankShift | (address & ((1u << kClusterRankShift) - 1));
}

constexpr bool is_in_shared_window(std::uint64_t address) { return address - kSharedWindow < kWindowBytes; }
/// In shared memory's own state space, of an address there or a generic one.
constexpr std::uint64_t without_shared_window(std::uint64_t address) {
  return is_in_shared_window(address) ? address - kSharedWindow : address;
}
constexpr bool is_in_local_window(std::uint64_t address) { return address - kLocalWindow < kWindowBytes; }

/// What is wrong with an access to shared memory.
struct SharedFinding {
  enum class Problem : std::uint8_t {
    none,
    not_written,
    partly_written,  ///< some of the bytes that are read were never written
    unordered_write,
    unordered_read,
    not_fenced,  ///< an asynchronous access to what was written without fence.proxy.async
  };
  Problem problem = Problem::none;
  Accessor other;  ///< whose access is not ordered with this one
};

/// The shared memory of a block: bytes, and for each granule (the smallest access of the kernel, 1 to 16 bytes) the
/// stamps of its last write, and of the last read, the last strong read and the last atomic or strong write of each
/// warp. A stamp says who accessed it and when; AccessClocks decides whether an access that is made now is ordered after
/// it. A stamp of an earlier block means: not written in this one.
///
/// Threads   one.
/// Source    Flanagan, Freund: FastTrack, PLDI 2009, with the reads of all warps as in DJIT+, which is exact.
class SharedMemory {
 public:
  using Knowledge = AccessClocks::Knowledge;

  /// Makes `bytes` of memory that nobody has written. `granule_bytes` is a power of two.
  void begin_block(std::size_t bytes, std::size_t granule_bytes, unsigned warps, bool checks_races);

  bool holds(std::uint64_t address, std::size_t bytes) const {
    return address >= kFirstSharedAddress && address + bytes <= kFirstSharedAddress + bytes_.size() &&
           address + bytes > address;
  }
  std::size_t bytes() const { return bytes_.size(); }
  std::byte* at(std::uint64_t address) { return bytes_.data() + (address - kFirstSharedAddress); }

  AccessClocks& clocks() { return clocks_; }
  SharedOrder& order() { return order_; }

  /// Notes that `thread` reads or writes bytes that the memory holds.
  SharedFinding note_read(std::uint64_t address, std::size_t bytes, unsigned thread) {
    return note_use(address, bytes, thread, reads_, &atomics_, SharedFinding::Problem::unordered_write);
  }
  SharedFinding note_write(std::uint64_t address, std::size_t bytes, unsigned thread);
  /// Both at once, by an operation that is atomic: atomics of other threads are not unordered with it.
  SharedFinding note_atomic(std::uint64_t address, std::size_t bytes, unsigned thread) {
    return note_use(address, bytes, thread, atomics_, &reads_, SharedFinding::Problem::unordered_read);
  }
  /// Of strong accesses (relaxed, acquire or release), which are not unordered with each other, nor with atomics.
  SharedFinding note_strong_read(std::uint64_t address, std::size_t bytes, unsigned thread) {
    return note_use(address, bytes, thread, strong_reads_, nullptr, SharedFinding::Problem::none);
  }
  SharedFinding note_strong_write(std::uint64_t address, std::size_t bytes, unsigned thread);

  /// Another block of the cluster writes, or reads: nothing is compared with that.
  void note_remote_write(std::uint64_t address, std::size_t bytes) {
    const Range range = range_of(address, bytes);
    std::fill(writes_.begin() + static_cast<std::ptrdiff_t>(range.first),
              writes_.begin() + static_cast<std::ptrdiff_t>(range.end), clocks_.remote_stamp());
  }
  bool is_written(std::uint64_t address, std::size_t bytes) const {
    const Range range = range_of(address, bytes);
    return std::all_of(writes_.begin() + static_cast<std::ptrdiff_t>(range.first),
                       writes_.begin() + static_cast<std::ptrdiff_t>(range.end),
                       [&](Stamp stamp) { return stamp >= clocks_.block_begin(); });
  }

  /// The same for the threads of a warp at once, of accesses that nothing is wrong with; false: look at each of them,
  /// because something may be.
  bool note_warp_read(const std::uint64_t* addresses, Mask lanes, std::size_t bytes, unsigned warp);
  bool note_warp_write(const std::uint64_t* addresses, Mask lanes, std::size_t bytes, unsigned warp);

  /// The same for what a thread started when it had `knowledge`, and what happens now: a write by it (`mine` its
  /// stamp) or by the copy engine, and a read by tensor cores (with_own, for all warps of the warpgroup).
  SharedFinding note_late_write(std::uint64_t address, std::size_t bytes, unsigned thread, Stamp mine,
                                const Knowledge& knowledge);
  SharedFinding note_late_read(std::uint64_t address, std::size_t bytes, Stamp mine, const Knowledge& knowledge);

 private:
  /// For each warp, and what works as one: when it accessed each granule last.
  struct Rows {
    std::uint64_t used = 0;  ///< in this block
    std::array<std::vector<Stamp>, AccessClocks::kActors> stamps;

    Stamp* of(unsigned actor, std::size_t granules) {
      used |= std::uint64_t{1} << actor;
      if (stamps[actor].empty()) stamps[actor].resize(granules);
      return stamps[actor].data();
    }
  };
  struct Range {
    std::size_t first = 0, end = 0;  ///< granules
  };
  Range range_of(std::uint64_t address, std::size_t bytes) const {
    const std::size_t offset = address - kFirstSharedAddress;
    return {offset >> granule_shift_, ((offset + bytes - 1) >> granule_shift_) + 1};
  }
  /// Who accesses: a thread now, or something that it started when it knew less.
  struct Access {
    unsigned warp = 0;
    unsigned self = 0;                     ///< the thread; kNobody
    const Knowledge* knowledge = nullptr;  ///< null: what the thread knows now
  };
  static constexpr unsigned kNobody = 1u << Accessor::kBits;

  bool is_ordered(Stamp stamp, const Access& access) const {
    return access.knowledge == nullptr ? clocks_.is_ordered(stamp, access.self)
                                       : clocks_.is_ordered(stamp, access.warp, access.self, *access.knowledge);
  }
  SharedFinding find_unordered(const Stamp* stamps, Range range, const Access& access,
                               SharedFinding::Problem problem) const;
  SharedFinding find_unordered(const Rows& rows, Range range, const Access& access,
                               SharedFinding::Problem problem) const;
  /// A write, read or atomic.
  SharedFinding find_unordered_use(Range range, const Access& access) const;
  void mark(Rows& rows, Range range, unsigned thread);
  /// Notes a read or atomic. Finds bytes that were never written, writes that are not ordered before it, and, as
  /// `problem`, accesses of `others` (null: of nobody) that are not.
  SharedFinding note_use(std::uint64_t address, std::size_t bytes, unsigned thread, Rows& own, const Rows* others,
                         SharedFinding::Problem problem);
  template <unsigned kGranules>
  bool note_warp_read_of(const std::uint64_t* addresses, Mask lanes, unsigned warp);
  template <unsigned kGranules>
  bool note_warp_write_of(const std::uint64_t* addresses, Mask lanes, unsigned warp);

  std::vector<std::byte> bytes_;
  unsigned granule_shift_ = 0;
  std::vector<Stamp> writes_;
  Rows reads_;
  Rows strong_reads_;
  Rows atomics_;  // and strong writes
  AccessClocks clocks_;
  SharedOrder order_{clocks_};
};

}  // namespace gradring::simulated_gpu
