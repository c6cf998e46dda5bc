// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/memory/access_log.h"
#include "kernels/simulated_gpu/memory/global_memory.h"

namespace gradring::simulated_gpu {

/// What blocks of a launch that one host thread executes do with global memory: each byte that a block writes; of what
/// it reads, each byte if the launch is known to write that allocation, else the range from the lowest to the highest
/// address of an instruction, because kernels read far more than they write. It is known from the first write on, or
/// from an earlier launch of the kernel that wrote through the same parameter.
class GlobalAccesses {
 public:
  GlobalAccesses(const Program& program, const LaunchSpec& launch, const GlobalMemory& memory);

  /// The lanes of `active` access `bytes` bytes each, all within an allocation. `first` to `end`: all of them.
  void note(const Operation& operation, AccessLog::Kind kind, Mask active, unsigned bytes,
            const std::uint64_t* addresses, std::uint64_t first, std::uint64_t end, bool is_consecutive,
            std::uint64_t allocation) {
    Used& used = use(operation, kind, allocation);
    if (!used.is_exact) {
      used.first = std::min(used.first, first);
      used.end = std::max(used.end, end);
      return;
    }
    if (is_consecutive && active == kAllLanes) return used.bytes.add(first, end);
    for_each_lane(active, [&](unsigned lane) { used.bytes.add(addresses[lane], addresses[lane] + bytes); });
  }
  /// One range is read.
  void note_read(const Operation& operation, std::uint64_t first, std::uint64_t end, std::uint64_t allocation) {
    note(operation, AccessLog::Kind::read, kAllLanes, 1, nullptr, first, end, true, allocation);
  }
  /// A fence for the whole GPU.
  void note_fence() { is_fenced_ = true; }
  void end_block(std::uint64_t block);
  /// After the last block.
  AccessLog take() {
    for (std::size_t position = 0; position < used_.size(); ++position) add_range(used_[position], position);
    return std::move(log_);
  }

 private:
  /// By an instruction.
  struct Used {
    AccessLog::Kind kind = AccessLog::Kind::read;
    bool is_strong = false;
    std::uint64_t allocation = 0;
    bool is_in_block = false;
    bool is_exact = false;
    std::uint64_t first = ~std::uint64_t{0};  ///< in the launch, while it is not exact
    std::uint64_t end = 0;
    ByteSet bytes;  ///< in the block, while it is exact
  };

  Used& use(const Operation& operation, AccessLog::Kind kind, std::uint64_t allocation) {
    Used& used = used_[program_.position_of(operation)];
    if (!used.is_in_block || used.allocation != allocation) [[unlikely]]
      begin(used, program_.position_of(operation), kind, allocation);
    return used;
  }
  void add_range(Used& used, std::size_t position);
  void add_written(std::uint64_t allocation);
  /// That of the pointer in the parameters at `offset`; 0 if these bytes are no pointer. They may be padding, which holds
  /// anything.
  std::uint64_t allocation_at(std::size_t offset) const;
  void begin(Used& used, std::size_t position, AccessLog::Kind kind, std::uint64_t allocation);

  const Program& program_;
  const LaunchSpec& launch_;
  const GlobalMemory& memory_;
  std::vector<Used> used_;  ///< by position
  std::vector<std::size_t> in_block_;
  std::vector<std::uint64_t> written_;  ///< allocations
  bool is_fenced_ = false;
  AccessLog log_;
};

/// "race in global memory: 4 bytes at 0x7f... are written by block (1, 0, 0), ... and read by block (0, 0, 0), ..."
std::string describe_race(const Program& program, const Extent& grid, const GlobalMemory& memory,
                          const AccessLog::Conflict& conflict);

}  // namespace gradring::simulated_gpu
