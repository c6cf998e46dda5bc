// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/tensor_copies.h"

#include <algorithm>
#include <cstring>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {

void TensorCopies::start(const Operation& operation, Warp& warp, unsigned lane, Request request) {
  pending_.push_back(
      {std::move(request), &operation, &warp, lane, block_.shared().clocks().at_start(warp.index(), kLaneBits[lane])});
}

void TensorCopies::land_at(std::uint32_t mbarrier) {
  if (pending_.empty()) return;
  const auto later = std::stable_partition(pending_.begin(), pending_.end(),
                                           [&](const Copy& copy) { return copy.request.mbarrier == mbarrier; });
  for (auto copy = pending_.begin(); copy != later; ++copy) land(*copy);
  pending_.erase(pending_.begin(), later);
}

void TensorCopies::end_block() {
  if (pending_.empty()) return;
  const Copy& copy = pending_.front();
  copy.warp->fail(*copy.operation, copy.lane,
                  "the block ends while a copy is under way: nobody waits for its mbarrier");
}

void TensorCopies::land(const Copy& copy) {
  const Request& request = copy.request;
  SynchronizedMbarriers& mbarriers = block_.mbarriers();
  at_lane(*copy.warp, *copy.operation, copy.lane, [&] {
    box_chunks(request.map, request.coordinates, request.shared_address, chunks_);
    const Stamp stamp = mbarriers.begin_landing(request.mbarrier);
    for (const BoxChunk& chunk : chunks_) land_chunk(copy, chunk, stamp);
    mbarriers.end_landing(request.mbarrier, request.map.box_bytes());
  });
}

void TensorCopies::land_chunk(const Copy& copy, const BoxChunk& chunk, Stamp stamp) {
  SharedMemory& shared = block_.shared();
  const Warp& warp = *copy.warp;
  const auto fail = [&](const std::string& what) { warp.fail(*copy.operation, copy.lane, what); };
  if (!shared.holds(chunk.shared, kChunkBytes))
    fail("shared memory is written out of bounds: 16 bytes at " + std::to_string(chunk.shared));
  if (block_.mbarriers().overlaps(chunk.shared, kChunkBytes)) fail("a copy overwrites an mbarrier");
  const SharedFinding finding =
      shared.note_late_write(chunk.shared, kChunkBytes, warp.thread_index(copy.lane), stamp, copy.knowledge);
  if (finding.problem != SharedFinding::Problem::none)
    fail(describe_finding(warp, finding, "16 bytes at " + std::to_string(chunk.shared), "written"));
  std::byte* const to = shared.at(chunk.shared);
  std::memset(to, 0, kChunkBytes);
  if (chunk.bytes == 0) return;
  Counters& counters = block_.counters();
  counters.instructions[block_.program().position_of(*copy.operation)].bytes += chunk.bytes;
  if (block_.counts_sectors()) counters.read.add(chunk.global, chunk.bytes);
  const GlobalMemory::Block* const block = block_.global().find(chunk.global, chunk.bytes);
  if (block == nullptr)
    fail("global memory is read out of bounds: " + block_.global().memory().describe(chunk.global, chunk.bytes));
  if (std::memchr(block->written.get() + (chunk.global - block->address), 0, chunk.bytes) != nullptr)
    fail("global memory is read before it is written: " + block_.global().memory().describe(chunk.global, chunk.bytes));
  if (GlobalAccesses* const accesses = block_.accesses())
    accesses->note_read(*copy.operation, chunk.global, chunk.global + chunk.bytes, block->address);
  std::memcpy(to + chunk.first, reinterpret_cast<const void*>(chunk.global), chunk.bytes);
}

}  // namespace gradring::simulated_gpu
