// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/global_accesses.h"

#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

/// Of a launch, about 200 MB: behind them, reads are not looked at.
constexpr std::size_t kMostAccesses = std::size_t{1} << 22;

const char* verb(AccessLog::Kind kind) {
  switch (kind) {
    case AccessLog::Kind::read: return "read";
    case AccessLog::Kind::write: return "written";
    case AccessLog::Kind::atomic: return "updated";
  }
  return "";
}

}  // namespace

void GlobalAccesses::begin(Ranges& ranges, std::size_t position, AccessLog::Kind kind) {
  ranges.is_used = true;
  ranges.kind = program_.strong_accesses.contains(position) ? AccessLog::Kind::atomic : kind;
  used_.push_back(position);
}

void GlobalAccesses::end_block(std::uint64_t block) {
  for (const std::size_t position : used_) {
    Ranges& ranges = ranges_[position];
    ranges.list.merge();
    if (ranges.kind != AccessLog::Kind::read || log_.size() < kMostAccesses)
      for (const RangeList::Range& range : ranges.list.ranges())
        log_.add({range.first, range.end, block, static_cast<std::uint32_t>(position), ranges.kind, is_fenced_});
    ranges.list.clear();
    ranges.is_used = false;
  }
  used_.clear();
  is_fenced_ = false;
}

std::string describe_race(const Program& program, const Extent& grid, const GlobalMemory& memory,
                          const AccessLog::Conflict& conflict) {
  const auto by = [&](const AccessLog::Access& access) {
    return std::string(verb(access.kind)) + " by block " + text_of(extent_at(grid, access.block)) + "\n   " +
           describe_instruction(program, access.position);
  };
  return "race in global memory: " + memory.describe(conflict.first, conflict.end - conflict.first) + ", are " +
         by(conflict.earlier) + "\n   and " + by(conflict.later) + "\n   of the same launch of " +
         kernel_label(*program.kernel) + ": nothing orders blocks";
}

}  // namespace gradring::simulated_gpu
