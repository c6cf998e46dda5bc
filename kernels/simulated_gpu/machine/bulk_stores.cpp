// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/bulk_stores.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {

void BulkStores::start(const Operation& operation, Warp& warp, unsigned lane, Request request) {
  is_used_ = true;
  Block& block = warp.block();
  std::erase_if(request.chunks, [](const BoxChunk& chunk) { return chunk.bytes == 0; });
  for (const BoxChunk& chunk : request.chunks) {
    if (!block.shared().holds(chunk.shared, kChunkBytes))
      warp.fail(operation, lane, joined("shared memory is read out of bounds: 16 bytes at ", chunk.shared),
                FindingKind::out_of_bounds);
    if (block.global().find(chunk.global, chunk.bytes) == nullptr)
      warp.fail(
          operation, lane,
          "global memory is written out of bounds: " + block.global().memory().describe(chunk.global, chunk.bytes),
          FindingKind::out_of_bounds);
  }
  pending_.push_back({.request = std::move(request),
                      .operation = &operation,
                      .lane = lane,
                      .group = committed_[lane],
                      .knowledge = block.shared().clocks().with_own(warp.index()),
                      .data = {}});
}

void BulkStores::wait(Warp& warp, Mask lanes, std::uint64_t pending, bool reads_only) {
  const auto is_awaited = [&](const Pending& entry) {
    return (lanes & kLaneBits[entry.lane]) != 0 && entry.group + pending < committed_[entry.lane];
  };
  bool reads = false;
  for (Pending& entry : pending_)
    if (is_awaited(entry) && !entry.is_read) read(warp, entry), reads = true;
  if (reads) warp.block().shared().clocks().acquire(warp.index(), lanes, lanes == warp.living(), done_);
  if (reads_only) return;
  for (const Pending& entry : pending_)
    if (is_awaited(entry)) write(warp, entry);
  std::erase_if(pending_, is_awaited);
}

void BulkStores::end_block(Warp& warp) {
  for (Pending& entry : pending_) {
    if (!entry.is_read) {
      note_finding(warp, FindingKind::unfinished_copy, *entry.operation, entry.lane, [] {
        return "the block ends while a bulk copy reads its shared memory: nobody waits for it with "
               "cp.async.bulk.wait_group";
      });
      read(warp, entry);
    }
    write(warp, entry);
  }
  pending_.clear();
}

void BulkStores::clear() {
  if (!std::exchange(is_used_, false)) return;
  committed_.fill(0);
  pending_.clear();
  done_ = {};
}

void BulkStores::read(Warp& warp, Pending& pending) {
  SharedMemory& shared = warp.block().shared();
  const Stamp stamp = shared.clocks().act(AccessClocks::kBulkStores, done_);
  for (const BoxChunk& chunk : pending.request.chunks) {
    const std::uint64_t address = chunk.shared + chunk.first;
    const SharedFinding finding = shared.note_late_read(address, chunk.bytes, stamp, pending.knowledge);
    if (finding.problem != SharedFinding::Problem::none)
      note_shared_finding(warp, *pending.operation, pending.lane, finding,
                          joined(unsigned{chunk.bytes}, " bytes at ", address), "read", kind_of(finding.problem));
    const std::byte* const from = shared.at(address);
    pending.data.insert(pending.data.end(), from, from + chunk.bytes);
  }
  pending.is_read = true;
}

void BulkStores::write(Warp& warp, const Pending& pending) {
  Block& block = warp.block();
  const Request& request = pending.request;
  const std::byte* from = pending.data.data();
  Counters& counters = block.counters();
  const auto kind = request.update == nullptr ? AccessLog::Kind::write : AccessLog::Kind::atomic;
  WriteWatch& watch = block.global().memory().watch();
  for (const BoxChunk& chunk : request.chunks) {
    const GlobalMemory::Block* const memory = block.global().find(chunk.global, chunk.bytes);
    if (memory == nullptr)
      warp.fail(*pending.operation, pending.lane, "global memory is written after its release, by a bulk copy",
                FindingKind::out_of_bounds);
    counters.instructions[position_in(warp, *pending.operation)].bytes += chunk.bytes;
    if (block.counts_sectors()) Counters::add_sectors(counters.written_sectors, chunk.global, chunk.bytes);
    if (GlobalAccesses* const accesses = block.accesses())
      accesses->note(*pending.operation, warp.index(), kind, kAllLanes, 1, nullptr, chunk.global,
                     chunk.global + chunk.bytes, true, memory->address);
    if (watch.touches(chunk.global, chunk.bytes))
      watch.note(describe_location(warp, position_in(warp, *pending.operation), pending.lane));
    if (request.update == nullptr) {
      std::memcpy(reinterpret_cast<void*>(chunk.global), from, chunk.bytes);
      std::memset(memory->written.get() + (chunk.global - memory->address), 1, chunk.bytes);
    } else {
      for (unsigned i = 0; i < chunk.bytes; i += request.element_bytes) {
        std::uint64_t operand = 0;
        std::memcpy(&operand, from + i, request.element_bytes);
        request.update(chunk.global + i, operand);
      }
    }
    from += chunk.bytes;
  }
  block.note_change();
}

}  // namespace gradring::simulated_gpu
