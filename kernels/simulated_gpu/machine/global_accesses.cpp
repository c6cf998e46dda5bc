// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/global_accesses.h"

#include <cstring>
#include <utility>

#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

/// Of a launch, about 170 MB: behind them, reads are known as ranges only.
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

GlobalAccesses::GlobalAccesses(const Program& program, const LaunchSpec& launch, const GlobalMemory& memory)
    : program_(program), launch_(launch), memory_(memory), used_(program.operations.size()) {
  for (const std::size_t offset : program.written_parameters->offsets())
    if (const std::uint64_t allocation = allocation_at(offset); allocation != 0) written_.push_back(allocation);
}

std::uint64_t GlobalAccesses::allocation_at(std::size_t offset) const {
  std::uint64_t pointer = 0;
  std::memcpy(&pointer, &launch_.parameters[offset], sizeof pointer);
  return memory_.begin_of(pointer);
}

void GlobalAccesses::add_written(std::uint64_t allocation) {
  written_.push_back(allocation);
  for (std::size_t offset = 0; offset + sizeof allocation <= launch_.parameters.size(); offset += sizeof allocation)
    if (allocation_at(offset) == allocation) program_.written_parameters->add(offset);
}

void GlobalAccesses::begin(Used& used, std::size_t position, AccessLog::Kind kind, std::uint64_t allocation) {
  if (used.allocation != allocation) add_range(used, position);
  used.allocation = allocation;
  const bool is_known = std::ranges::find(written_, allocation) != written_.end();
  if (kind != AccessLog::Kind::read && !is_known) add_written(allocation);
  used.kind = kind;
  used.is_strong = kind == AccessLog::Kind::atomic || program_.strong_accesses.contains(position);
  used.is_exact = kind != AccessLog::Kind::read || (is_known && log_.size() < kMostAccesses);
  if (!std::exchange(used.is_in_block, true)) in_block_.push_back(position);
}

void GlobalAccesses::end_block(std::uint64_t block) {
  for (const std::size_t position : in_block_) {
    Used& used = used_[position];
    used.bytes.take([&](const ByteSet::Range& range) {
      log_.add({.first = range.first,
                .end = range.end,
                .block = block,
                .position = static_cast<std::uint32_t>(position),
                .kind = used.kind,
                .is_strong = used.is_strong,
                .is_fenced = is_fenced_});
    });
    used.is_in_block = false;
  }
  in_block_.clear();
  is_fenced_ = false;
}

/// What was read of an allocation by all blocks together.
void GlobalAccesses::add_range(Used& used, std::size_t position) {
  if (used.end != 0)
    log_.add({.first = used.first,
              .end = used.end,
              .block = AccessLog::kAllBlocks,
              .position = static_cast<std::uint32_t>(position),
              .kind = used.kind});
  used.first = ~std::uint64_t{0};
  used.end = 0;
}

std::string describe_race(const Program& program, const Extent& grid, const GlobalMemory& memory,
                          const AccessLog::Conflict& conflict) {
  const auto by = [&](const AccessLog::Access& access) {
    return joined(verb(access.kind), " by block ", text_of(extent_at(grid, access.block)), "\n   ",
                  describe_instruction(program, access.position));
  };
  return "race in global memory: " + memory.describe(conflict.first, conflict.end - conflict.first) + ", are " +
         by(conflict.earlier) + "\n   and " + by(conflict.later) + "\n   of the same launch of " +
         kernel_label(*program.kernel) + ": nothing orders blocks";
}

}  // namespace gradring::simulated_gpu
