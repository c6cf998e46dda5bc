// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/global_accesses.h"

#include <utility>

#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

/// Of a launch, about 170 MB: behind them, reads are not looked at.
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

void GlobalAccesses::begin(Used& used, std::size_t position, AccessLog::Kind kind, std::uint64_t allocation) {
  if (used.allocation != allocation) add_range(used, position);
  used.allocation = allocation;
  const bool is_known = std::ranges::find(written_, allocation) != written_.end();
  if (kind != AccessLog::Kind::read && !is_known) written_.push_back(allocation);
  used.kind = program_.strong_accesses.contains(position) ? AccessLog::Kind::atomic : kind;
  used.is_exact = is_known || kind != AccessLog::Kind::read;
  if (!std::exchange(used.is_in_block, true)) in_block_.push_back(position);
}

void GlobalAccesses::end_block(std::uint64_t block) {
  for (const std::size_t position : in_block_) {
    Used& used = used_[position];
    const bool is_kept = used.kind != AccessLog::Kind::read || log_.size() < kMostAccesses;
    used.bytes.take([&](const ByteSet::Range& range) {
      if (is_kept)
        log_.add({range.first, range.end, block, static_cast<std::uint32_t>(position), used.kind, is_fenced_});
    });
    used.is_in_block = false;
  }
  in_block_.clear();
  is_fenced_ = false;
}

/// What was read of an allocation by all blocks together.
void GlobalAccesses::add_range(Used& used, std::size_t position) {
  if (used.end != 0 && used.kind == AccessLog::Kind::read)
    log_.add({used.first, used.end, AccessLog::kAllBlocks, static_cast<std::uint32_t>(position), used.kind, false});
  used.first = ~std::uint64_t{0};
  used.end = 0;
}

AccessLog GlobalAccesses::take() {
  for (std::size_t position = 0; position < used_.size(); ++position) add_range(used_[position], position);
  return std::move(log_);
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
