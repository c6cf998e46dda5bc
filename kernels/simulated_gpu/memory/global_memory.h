// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/simulated_gpu/memory/access_log.h"
#include "kernels/simulated_gpu/memory/work_order.h"

namespace gradring::simulated_gpu {

/// Memory of the host that nobody gave to CUDA, where kernels may use it all the same, as with heterogeneous memory
/// management.
///
/// Threads   any.
class PageableMemory {
 public:
  struct Range {
    const void* data = nullptr;
    std::size_t bytes = 0;
  };

  virtual ~PageableMemory() = default;
  /// The block that holds the byte at `address`; empty without such a block. Whoever gives it back calls
  /// GlobalMemory::remove first.
  virtual Range find(const void* address) = 0;
};

/// Notes who writes a range of global memory: finds the instruction behind a wrong result that breaks no rule.
///
/// Threads   any.
/// Cost      one comparison for each write of a warp while nothing is watched.
class WriteWatch {
 public:
  struct Writes {
    std::uint64_t count = 0;
    std::string last;  ///< who wrote last: a thread and its instruction, or a copy
  };

  /// Forgets what was noted. No bytes: nothing is watched.
  void begin(std::uint64_t address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    writes_ = {};
    first_ = address;
    end_ = bytes == 0 ? 0 : address + bytes;
  }
  bool touches(std::uint64_t address, std::size_t bytes) const {
    return address < end_.load(std::memory_order_relaxed) && first_.load(std::memory_order_relaxed) < address + bytes;
  }
  void note(std::string writer) {
    const std::lock_guard lock(mutex_);
    ++writes_.count;
    writes_.last = std::move(writer);
  }
  WriteWatch::Writes writes() const {
    const std::lock_guard lock(mutex_);
    return writes_;
  }

 private:
  std::atomic<std::uint64_t> first_{0};
  std::atomic<std::uint64_t> end_{0};
  mutable std::mutex mutex_;  // of writes_
  Writes writes_;
};

/// The memory that kernels and copies of all simulated GPUs of a process may use: blocks of host memory, each with a
/// note of which bytes were written. Addresses are those of the process (unified addressing).
///
/// Threads   any; blocks of a grid write different bytes of one block at the same time.
class GlobalMemory {
 public:
  struct Block {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    int device = 0;
    bool is_pinned_host = false;        ///< or pageable
    ZeroedArray<std::uint8_t> written;  ///< a byte for each byte, 0: not written
    std::unique_ptr<BlockUses> uses;    ///< null: nobody looks for races

    bool holds(std::uint64_t first, std::size_t count) const {
      const std::uint64_t offset = first - address;
      return offset <= bytes && count <= bytes - offset;
    }
  };

  /// `checks_order`: looks for races between work that nothing puts in an order. `pageable`: null if kernels may not
  /// use such memory.
  explicit GlobalMemory(bool checks_order = false, PageableMemory* pageable = nullptr);
  ~GlobalMemory();

  /// Pinned memory of the host counts as written, as the host may write it unseen.
  void add(const void* data, std::size_t bytes, int device, bool is_pinned_host);
  /// Later accesses are faults that name the freed block.
  void remove(const void* data);

  /// The block that holds all of [address, address + bytes); null without such a block. Valid until it is removed.
  const Block* find(std::uint64_t address, std::size_t bytes) const;
  /// The begin of the block that holds the byte at `address`; 0 without such a block, or if it is pageable memory that
  /// find() has not seen. For numbers that may be no address.
  std::uint64_t begin_of(std::uint64_t address) const;
  /// Changes with each add and remove: what find() returned before may be gone.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  /// "16 bytes at 0x7f..., 4 bytes behind the end of a block of 4096 bytes of GPU 0", "... in a block that was
  /// freed", ...
  std::string describe(std::uint64_t address, std::size_t bytes) const;

  void mark_written(std::uint64_t address, std::size_t bytes);
  /// Whether every byte was written; true for memory that is not noted here (pageable memory of the host).
  bool is_written(std::uint64_t address, std::size_t bytes) const;

  /// Whether kernels of a device reach another one's memory (peer access). Set: false if nothing changes.
  bool reaches(int device, int other) const {
    return (reached_[static_cast<std::size_t>(device)].load(std::memory_order_relaxed) >> other & 1) != 0;
  }
  bool set_reaches(int device, int other, bool reaches) {
    const std::uint64_t bit = std::uint64_t{1} << other;
    std::atomic<std::uint64_t>& reached = reached_[static_cast<std::size_t>(device)];
    const std::uint64_t before = reaches ? reached.fetch_or(bit) : reached.fetch_and(~bit);
    ++generation_;
    return ((before & bit) != 0) != reaches;
  }

  WriteWatch& watch() { return watch_; }

  /// Calls `report` for a race between streams or with the host, instead of a Fault. `users` names both sides, without
  /// addresses: who used the memory before, and who uses it now. To be called before any work.
  using ReportRace = std::function<void(const std::string& users, const std::string& text, const CodeLocation& before,
                                        const CodeLocation& now)>;
  void report_races(ReportRace report);

  /// Calls `wrote` when a kernel has written pinned memory of the host; not pageable memory, which may hold anything.
  using WrotePinned = std::function<void(std::uint64_t address, std::size_t bytes)>;
  void watch_pinned(WrotePinned wrote);

  /// What a kernel that has ended used. `describe` names an instruction by its position; it stays.
  ///
  /// Errors    Fault for a race with other work, if the current work has an order.
  void note_kernel(const AccessLog& accesses, const WorkLog::Describe& describe);
  /// The same for one range that something else reads or writes, and for the watch. `name` is for messages:
  /// "cudaMemcpyAsync".
  void note_use(std::uint64_t address, std::size_t bytes, bool is_write, const std::string& name);
  /// Changes with every noted use that writes there; 0 before the first.
  std::uint32_t newest_writer(std::uint64_t address, std::size_t bytes) const;

 private:
  struct Parts;
  WriteWatch watch_;
  std::atomic<std::uint64_t> generation_{1};
  std::array<std::atomic<std::uint64_t>, 64> reached_{};  ///< by device, a bit for each other one
  std::unique_ptr<Parts> parts_;
};

/// Global memory as one host thread of a launch sees it: it remembers the blocks that it used last.
class GlobalView {
 public:
  GlobalView(GlobalMemory& memory, int device) : memory_(memory), device_(device) {}

  /// The block that holds all of [address, address + bytes), and that the device reaches: its own, that of a peer, or
  /// pinned memory; null without such a block.
  const GlobalMemory::Block* find(std::uint64_t address, std::size_t bytes) {
    if (const std::uint64_t generation = memory_.generation(); generation != generation_) [[unlikely]] {
      generation_ = generation;
      recent_.fill(nullptr);
    }
    for (const GlobalMemory::Block* block : recent_)
      if (block != nullptr && block->holds(address, bytes)) return block;
    const GlobalMemory::Block* const found = memory_.find(address, bytes);
    if (found != nullptr && !found->is_pinned_host && found->device != device_ &&
        !memory_.reaches(device_, found->device))
      return nullptr;
    if (found != nullptr) {
      for (std::size_t i = recent_.size() - 1; i > 0; --i) recent_[i] = recent_[i - 1];
      recent_[0] = found;
    }
    return found;
  }
  GlobalMemory& memory() { return memory_; }
  /// Forgets the blocks that were found: memory may have been freed since the launch before.
  void forget() { generation_ = 0; }

 private:
  GlobalMemory& memory_;
  int device_;
  std::uint64_t generation_ = 0;
  std::array<const GlobalMemory::Block*, 4> recent_{};
};

}  // namespace gradring::simulated_gpu
