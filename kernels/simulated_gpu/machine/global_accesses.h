// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/machine/findings.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/memory/access_log.h"
#include "kernels/simulated_gpu/memory/block_order.h"
#include "kernels/simulated_gpu/memory/global_memory.h"
#include "kernels/simulated_gpu/memory/memory_budget.h"

namespace gradring::simulated_gpu {

/// What the host threads of a launch share to find its races.
struct RaceSearch {
  /// ExecutionOptions::most_race_bytes.
  explicit RaceSearch(std::size_t bytes) : log(bytes / 2), words(bytes / 2) {}

  MemoryBudget log;    ///< of what blocks do, and know of each other
  MemoryBudget words;  ///< of GlobalWords
  BlockOrder order{log};
};

/// What blocks of a launch that one host thread executes do with global memory: each byte that a block writes; of what
/// it reads, each byte if the launch is known to write that allocation, else the range from the lowest to the highest
/// address of an instruction, because kernels read far more than they write. It is known from the first write on, or
/// from an earlier launch of the kernel that wrote through the same parameter. When half of the log's memory is taken,
/// all reads are ranges; when all is taken, nothing more is noted, and its races are not found.
class GlobalAccesses {
 public:
  GlobalAccesses(const Program& program, const LaunchSpec& launch, const GlobalMemory& memory, RaceSearch& races);

  /// Forgets the launch before, and reads the parameters of the new one.
  void begin_launch();
  void begin_block(std::uint64_t block);

  /// The lanes of `active` access `bytes` bytes each, all within an allocation. `first` to `end`: all of them.
  /// `silent`: lanes whose writes change nothing. To be called before the access itself.
  void note(const Operation& operation, unsigned warp, AccessLog::Kind kind, Mask active, unsigned bytes,
            const std::uint64_t* addresses, std::uint64_t first, std::uint64_t end, bool is_consecutive,
            std::uint64_t allocation, Mask silent = 0) {
    if (!observed_.empty()) [[unlikely]]
      take_over();
    if (!has_waited_) [[unlikely]]
      note_early(operation, kind, active, bytes, addresses, first, end, is_consecutive);
    Used& used = use(operation, kind, allocation);
    if (!used.is_exact) {
      used.first = std::min(used.first, first);
      used.end = std::max(used.end, end);
    } else {
      if (silent != active) add_lanes(used.bytes, active & ~silent, bytes, addresses, first, end, is_consecutive);
      if (silent != 0) add_lanes(used.silent, silent, bytes, addresses, first, end, is_consecutive);
    }
    if (used.order.is_strong && addresses != nullptr) [[unlikely]]
      synchronize(used, warp, active, addresses);
  }
  const MemoryOrder& order_of(const Operation& operation) const { return used_[program_.position_of(operation)].order; }
  /// Whether this is a plain access to an allocation that the launch writes.
  bool is_plain_on_written(const Operation& operation, std::uint64_t allocation) const {
    const Used& used = used_[program_.position_of(operation)];
    return used.order.is_plain && used.is_exact && used.allocation == allocation;
  }
  /// One range is read.
  void note_read(const Operation& operation, std::uint64_t first, std::uint64_t end, std::uint64_t allocation) {
    note(operation, 0, AccessLog::Kind::read, kAllLanes, 1, nullptr, first, end, true, allocation);
  }
  /// griddepcontrol.wait, by a warp: taken as one of the block.
  void note_wait_for_launch_before() { has_waited_ = true; }
  /// griddepcontrol.launch_dependents
  void note_launch_of_dependents() {
    if (!has_waited_) log_.add_unwaited();
  }
  /// A fence for the whole GPU, by a warp.
  void note_fence(unsigned warp);
  /// At a barrier of these blocks, which one host thread executes: what each has done comes before what each does from
  /// now on.
  static void join(std::span<GlobalAccesses* const> blocks);
  void end_block() {
    take_over();
    end_segment();
    if (!has_waited_) log_.add_unwaited();
  }
  /// After the last block.
  AccessLog take() {
    for (std::size_t position = 0; position < used_.size(); ++position) add_range(used_[position], position);
    for (auto& [position, early] : early_) add_early(early, position);
    return std::move(log_);
  }

 private:
  /// By an instruction.
  struct Used {
    AccessLog::Kind kind = AccessLog::Kind::read;
    MemoryOrder order;
    std::uint64_t allocation = 0;
    bool is_in_segment = false;
    bool is_exact = false;
    std::uint64_t first = ~std::uint64_t{0};  ///< in the launch, while it is not exact
    std::uint64_t end = 0;
    // In the segment, while it is exact.
    ByteSet bytes;
    ByteSet silent;  ///< written, and had their values already
  };

  Used& use(const Operation& operation, AccessLog::Kind kind, std::uint64_t allocation) {
    Used& used = used_[program_.position_of(operation)];
    if (!used.is_in_segment || used.allocation != allocation) [[unlikely]]
      begin(used, program_.position_of(operation), kind, allocation);
    return used;
  }
  void add_range(Used& used, std::size_t position);

  static void add_lanes(ByteSet& to, Mask active, unsigned bytes, const std::uint64_t* addresses, std::uint64_t first,
                        std::uint64_t end, bool is_consecutive) {
    if ((is_consecutive && active == kAllLanes) || end - first == bytes)  // all lanes may access one word
      to.add(first, end);
    else
      for_each_lane(active, [&](unsigned lane) { to.add(addresses[lane], addresses[lane] + bytes); });
  }

  /// By an instruction before griddepcontrol.wait, in a launch that may begin early.
  struct Early {
    AccessLog::Kind kind = AccessLog::Kind::read;
    ByteSet bytes;
  };
  void note_early(const Operation& operation, AccessLog::Kind kind, Mask active, unsigned bytes,
                  const std::uint64_t* addresses, std::uint64_t first, std::uint64_t end, bool is_consecutive);
  void add_early(Early& early, std::size_t position);

  void add_written(std::uint64_t allocation);
  /// That of the pointer in the parameters at `offset`; 0 if these bytes are no pointer. They may be padding, which
  /// holds anything.
  std::uint64_t allocation_at(std::size_t offset) const;
  void begin(Used& used, std::size_t position, AccessLog::Kind kind, std::uint64_t allocation);

  // The order of blocks (PTX ISA, Memory Consistency Model: release and acquire patterns, causality order), as that of
  // vector clocks. What a block does between two fences, releases or acquires is a segment of it.
  /// A strong access of these lanes publishes what was fenced before, and may observe what others published.
  void synchronize(const Used& used, unsigned warp, Mask active, const std::uint64_t* addresses);
  /// Of locations that were observed. They are looked up later than the read, so that no write that it saw is missing.
  void take_over();
  /// By a relaxed read of a warp.
  void note_before_fence(unsigned warp, const BlockOrder::Clock& published);
  /// Puts what was accessed into the log.
  void end_segment();
  /// Whether the log has room for one more access.
  bool has_room();
  /// In the log: the segment that is open, with this number; none if there is no room.
  std::optional<std::uint32_t> add_segment(std::uint32_t number);
  /// What the block knows, and its own segments until now.
  BlockOrder::Clock known_and_own() const;

  const Program& program_;
  const LaunchSpec& launch_;
  const GlobalMemory& memory_;
  std::vector<Used> used_;  ///< by position
  std::vector<std::size_t> in_segment_;
  std::vector<std::uint64_t> written_;  ///< allocations
  struct Observed {
    std::uint64_t address = 0;
    unsigned warp = 0;
    bool is_acquire = false;
  };
  RaceSearch& races_;
  std::uint64_t block_ = 0;
  std::uint32_t segment_ = 0;          ///< the number of the one that is open
  std::uint32_t fenced_segments_ = 0;  ///< of this block, before its last fence
  BlockOrder::Clock known_;            ///< of other blocks; null: nothing
  BlockOrder::Clock fenced_;  ///< what a relaxed write publishes: what was known before the last fence; null: nothing
  std::map<unsigned, BlockOrder::Clock>
      observed_before_fence_;  ///< by relaxed reads of each warp: known from its next fence on
  std::vector<Observed> observed_;
  bool has_waited_ = false;             ///< for the launch before, or it need not
  std::map<std::size_t, Early> early_;  ///< by position
  AccessLog log_;
  std::size_t room_ = 0;  ///< bytes of the log's memory that were taken, and are not used
};

FindingKind kind_of(const AccessLog::Conflict& conflict);
/// "race in global memory: 4 bytes at 0x7f... are written by block (1, 0, 0), ... and read by block (0, 0, 0), ..."
std::string describe_race(const Program& program, const Extent& grid, const GlobalMemory& memory,
                          const AccessLog::Conflict& conflict);

}  // namespace gradring::simulated_gpu
