// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/memory/access_log.h"
#include "kernels/simulated_gpu/memory/global_memory.h"

namespace gradring::simulated_gpu {

/// What blocks of a launch that one host thread executes do with global memory.
class GlobalAccesses {
 public:
  explicit GlobalAccesses(const Program& program) : program_(program), ranges_(program.operations.size()) {}

  /// The operation accesses [first, end).
  void note(const Operation& operation, AccessLog::Kind kind, std::uint64_t first, std::uint64_t end) {
    Ranges& ranges = ranges_[program_.position_of(operation)];
    if (!ranges.is_used) [[unlikely]]
      begin(ranges, program_.position_of(operation), kind);
    ranges.list.add(first, end);
  }
  /// A fence for the whole GPU.
  void note_fence() { is_fenced_ = true; }
  void end_block(std::uint64_t block);

  AccessLog& log() { return log_; }

 private:
  struct Ranges {
    RangeList list;
    AccessLog::Kind kind = AccessLog::Kind::read;
    bool is_used = false;
  };
  void begin(Ranges& ranges, std::size_t position, AccessLog::Kind kind);

  const Program& program_;
  std::vector<Ranges> ranges_;  ///< by position
  std::vector<std::size_t> used_;
  bool is_fenced_ = false;
  AccessLog log_;
};

/// "race in global memory: 4 bytes at 0x7f... are written by block (1, 0, 0), ... and read by block (0, 0, 0), ..."
std::string describe_race(const Program& program, const Extent& grid, const GlobalMemory& memory,
                          const AccessLog::Conflict& conflict);

}  // namespace gradring::simulated_gpu
