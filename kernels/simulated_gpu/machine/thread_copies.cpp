// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/thread_copies.h"

#include <algorithm>
#include <cstring>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {

void ThreadCopies::start(const Operation& operation, Warp& warp, std::span<const Copy> copies) {
  const auto start = static_cast<std::uint32_t>(starts_.size());
  Mask lanes = 0;
  for (const Copy& copy : copies) lanes |= kLaneBits[copy.lane];
  starts_.push_back({&operation, warp.block().shared().clocks().at_start(warp.index(), lanes)});
  for (const Copy& copy : copies) pending_.push_back({copy, committed_[copy.lane], start});
}

void ThreadCopies::commit(Mask lanes) {
  for_each_lane(lanes, [&](unsigned lane) { ++committed_[lane]; });
}

void ThreadCopies::wait(Warp& warp, Mask lanes, std::uint64_t pending, bool all) {
  const auto stays = [&](const Pending& entry) {
    const unsigned lane = entry.copy.lane;
    if ((lanes & kLaneBits[lane]) == 0 || (!all && entry.group + pending >= committed_[lane])) return true;
    land(warp, entry);
    return false;
  };
  std::size_t kept = 0;
  for (const Pending& entry : pending_)
    if (stays(entry)) pending_[kept++] = entry;
  pending_.resize(kept);
  if (pending_.empty()) starts_.clear();
}

void ThreadCopies::clear() {
  committed_.fill(0);
  pending_.clear();
  starts_.clear();
}

void ThreadCopies::land(Warp& warp, const Pending& pending) {
  const Copy& copy = pending.copy;
  SharedMemory& shared = warp.block().shared();
  const Start& start = starts_[pending.start];
  const unsigned thread = warp.thread_index(copy.lane);
  shared.clocks().begin_access(warp.index());
  const SharedFinding finding =
      shared.note_late_write(copy.to, copy.bytes, thread, shared.clocks().stamp(thread), start.knowledge);
  if (finding.problem != SharedFinding::Problem::none)
    warp.fail(*start.operation, copy.lane,
              describe_finding(warp, finding, std::to_string(copy.bytes) + " bytes at " + std::to_string(copy.to),
                               "written"));
  std::byte* const to = shared.at(copy.to);
  std::memcpy(to, reinterpret_cast<const void*>(copy.from), copy.filled);
  std::memset(to + copy.filled, 0, copy.bytes - copy.filled);
}

}  // namespace gradring::simulated_gpu
