// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/asynchronous_copies.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {

void ThreadCopies::start(const Operation& operation, Warp& warp, std::span<const Copy> copies) {
  const auto start = static_cast<std::uint32_t>(starts_.size());
  Mask lanes = 0;
  for (const Copy& copy : copies) lanes |= kLaneBits[copy.lane];
  starts_.push_back({&operation, warp.block().shared().clocks().at_start(warp.index(), lanes)});
  for (const Copy& copy : copies) pending_.push_back({copy, next_++, committed_[copy.lane], start});
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
  arrivals_.clear();
}

void ThreadCopies::land_arrivals(Warp& warp, std::uint32_t mbarrier) {
  const std::vector<Arrival> all = std::exchange(arrivals_, {});
  for (const Arrival& arrival : all) {
    if (arrival.mbarrier != mbarrier) {
      arrivals_.push_back(arrival);
      continue;
    }
    std::erase_if(pending_, [&](const Pending& entry) {
      const bool lands = entry.copy.lane == arrival.lane && entry.number < arrival.before;
      if (lands) land(warp, entry);
      return lands;
    });
    warp.block().mbarriers().arrive(mbarrier, 1, warp.thread_index(arrival.lane), false);
  }
  if (pending_.empty()) starts_.clear();
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
    note_shared_finding(warp, *start.operation, copy.lane, finding, joined(copy.bytes, " bytes at ", copy.to),
                        "written", kind_of(finding.problem));
  std::byte* const to = shared.at(copy.to);
  std::memcpy(to, reinterpret_cast<const void*>(copy.from), copy.filled);
  std::memset(to + copy.filled, 0, copy.bytes - copy.filled);
}

void TensorCopies::Request::find_chunks(std::vector<BoxChunk>& chunks) const {
  if (!coordinates.empty()) return box_chunks(map, coordinates, shared_address, chunks);
  chunks.clear();
  for (std::uint32_t offset = 0; offset < plain_bytes; offset += kChunkBytes)
    chunks.push_back({.shared = shared_address + offset, .bytes = kChunkBytes, .global = global_address + offset});
}

void TensorCopies::start(const Operation& operation, Warp& warp, unsigned lane, Request request) {
  // What a thread of another block knows of this one is not tracked: everything.
  AccessClocks::Knowledge everything{.lanes = ~std::uint32_t{0}, .bound = ~Stamp{0}};
  everything.others.fill(~std::uint32_t{0});
  const bool is_own = &warp.block() == &block_;
  pending_.push_back(
      {std::move(request), &operation, &warp, lane,
       is_own ? block_.shared().clocks().at_start(warp.index(), kLaneBits[lane]) : std::move(everything)});
}

void TensorCopies::land_at(std::uint32_t mbarrier) {
  const auto is_due = [&](const Copy& copy) { return copy.request.mbarrier == mbarrier; };
  if (std::ranges::none_of(pending_, is_due)) return;  // mostly: threads look again and again
  const auto later = std::stable_partition(pending_.begin(), pending_.end(), is_due);
  for (auto copy = pending_.begin(); copy != later; ++copy) land(*copy);
  pending_.erase(pending_.begin(), later);
}

void TensorCopies::end_block() {
  if (pending_.empty()) return;
  const Copy& copy = pending_.front();
  note_finding(*copy.warp, FindingKind::unfinished_copy, *copy.operation, copy.lane,
               [] { return "the block ends while a copy is under way: nobody waits for its mbarrier"; });
  pending_.clear();
}

void TensorCopies::land(const Copy& copy) {
  const Request& request = copy.request;
  SynchronizedMbarriers& mbarriers = block_.mbarriers();
  at_lane(*copy.warp, *copy.operation, copy.lane, [&] {
    request.find_chunks(chunks_);
    const Stamp stamp = mbarriers.begin_landing(request.mbarrier);
    for (const BoxChunk& chunk : chunks_) land_chunk(copy, chunk, stamp);
    mbarriers.end_landing(request.mbarrier, request.bytes());
  });
}

void TensorCopies::land_chunk(const Copy& copy, const BoxChunk& chunk, Stamp stamp) {
  SharedMemory& shared = block_.shared();
  const Warp& warp = *copy.warp;
  const auto fail = [&](const std::string& what) { warp.fail(*copy.operation, copy.lane, what); };
  if (!shared.holds(chunk.shared, kChunkBytes))
    fail(joined("shared memory is written out of bounds: 16 bytes at ", chunk.shared));
  if (block_.mbarriers().overlaps(chunk.shared, kChunkBytes)) fail("a copy overwrites an mbarrier");
  const SharedFinding finding =
      shared.note_late_write(chunk.shared, kChunkBytes, warp.thread_index(copy.lane), stamp, copy.knowledge);
  if (finding.problem != SharedFinding::Problem::none)
    note_shared_finding(warp, *copy.operation, copy.lane, finding, joined("16 bytes at ", chunk.shared), "written",
                        kind_of(finding.problem));
  std::byte* const to = shared.at(chunk.shared);
  std::memset(to, 0, kChunkBytes);
  if (chunk.bytes == 0) return;
  Counters& counters = block_.counters();
  counters.instructions[block_.program().position_of(*copy.operation)].bytes += chunk.bytes;
  if (block_.counts_sectors()) Counters::add_sectors(counters.read_sectors, chunk.global, chunk.bytes);
  const GlobalMemory::Block* const block = block_.global().find(chunk.global, chunk.bytes);
  if (block == nullptr)
    fail("global memory is read out of bounds: " + block_.global().memory().describe(chunk.global, chunk.bytes));
  if (std::memchr(block->written.get() + (chunk.global - block->address), 0, chunk.bytes) != nullptr)
    note_finding(warp, FindingKind::not_written, *copy.operation, copy.lane, [&] {
      return "global memory is read before it is written: " +
             block_.global().memory().describe(chunk.global, chunk.bytes);
    });
  if (GlobalAccesses* const accesses = block_.accesses())
    accesses->note_read(*copy.operation, chunk.global, chunk.global + chunk.bytes, block->address);
  std::memcpy(to + chunk.first, reinterpret_cast<const void*>(chunk.global), chunk.bytes);
}

}  // namespace gradring::simulated_gpu
