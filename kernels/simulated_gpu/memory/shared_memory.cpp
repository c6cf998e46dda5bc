// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/shared_memory.h"

#include <bit>

namespace gradring::simulated_gpu {

void SharedMemory::begin_block(std::size_t bytes, std::size_t granule_bytes, unsigned warps, bool checks_races) {
  const unsigned shift = static_cast<unsigned>(std::countr_zero(granule_bytes));
  const std::size_t count = (bytes >> shift) + 1;
  if (shift != granule_shift_ || count > writes_.size() || clocks_.is_exhausted()) {
    granule_shift_ = shift;
    writes_.assign(std::max(count, writes_.size()), 0);
    reads_.assign(writes_.size(), 0);
    second_reads_.clear();
    clocks_.begin_again();
  }
  has_late_reads_ = false;
  bytes_.resize(bytes);  // what earlier blocks left is never read: it is not written
  clocks_.begin_block(warps, checks_races);
}

template <unsigned kGranules>
bool SharedMemory::note_warp_read_of(const std::uint64_t* addresses, Mask lanes, unsigned warp) {
  const Stamp known = clocks_.ordered_before(warp * kWarpSize);
  const Stamp first = clocks_.stamp(warp * kWarpSize);
  Stamp lowest[kGranules];
  Stamp highest[kGranules] = {};
  std::ranges::fill(lowest, ~Stamp{0});
  for_each_lane(lanes, [&](unsigned lane) {
    const std::size_t granule = (addresses[lane] - kFirstSharedAddress) >> granule_shift_;
    const Stamp* const writes = writes_.data() + granule;
    Stamp* const reads = reads_.data() + granule;
    const Stamp mine = first + lane;
    for (unsigned i = 0; i < kGranules; ++i) {
      lowest[i] = std::min(lowest[i], writes[i]);
      highest[i] = std::max(highest[i], writes[i]);
      reads[i] = reads[i] < known ? mine : merged(reads[i], mine);
    }
  });
  return std::ranges::min(lowest) >= clocks_.block_begin() && std::ranges::max(highest) < known;
}

template <unsigned kGranules>
bool SharedMemory::note_warp_write_of(const std::uint64_t* addresses, Mask lanes, unsigned warp) {
  Stamp highest = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    const std::size_t granule = (addresses[lane] - kFirstSharedAddress) >> granule_shift_;
    for (unsigned i = 0; i < kGranules; ++i) highest = std::max({highest, writes_[granule + i], reads_[granule + i]});
  });
  if (highest >= clocks_.ordered_before(warp * kWarpSize)) return false;
  const Stamp first = clocks_.stamp(warp * kWarpSize);
  Stamp overwritten = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    Stamp* const writes = writes_.data() + ((addresses[lane] - kFirstSharedAddress) >> granule_shift_);
    for (unsigned i = 0; i < kGranules; ++i) {
      overwritten = std::max(overwritten, writes[i]);
      writes[i] = first + lane;
    }
  });
  return overwritten < first;  // else two lanes write the same bytes
}

bool SharedMemory::note_warp_read(const std::uint64_t* addresses, Mask lanes, std::size_t bytes, unsigned warp) {
  switch (bytes >> granule_shift_) {
    case 1: return note_warp_read_of<1>(addresses, lanes, warp);
    case 2: return note_warp_read_of<2>(addresses, lanes, warp);
    case 4: return note_warp_read_of<4>(addresses, lanes, warp);
    case 8: return note_warp_read_of<8>(addresses, lanes, warp);
    default: return false;
  }
}

bool SharedMemory::note_warp_write(const std::uint64_t* addresses, Mask lanes, std::size_t bytes, unsigned warp) {
  if (has_late_reads_) return false;
  switch (bytes >> granule_shift_) {
    case 1: return note_warp_write_of<1>(addresses, lanes, warp);
    case 2: return note_warp_write_of<2>(addresses, lanes, warp);
    case 4: return note_warp_write_of<4>(addresses, lanes, warp);
    case 8: return note_warp_write_of<8>(addresses, lanes, warp);
    default: return false;
  }
}

SharedFinding SharedMemory::unordered(std::span<const Stamp> stamps, unsigned thread, const Knowledge& knowledge,
                                      SharedFinding::Problem problem) const {
  for (const Stamp stamp : stamps)
    if (!clocks_.is_ordered(stamp, thread / kWarpSize, thread, knowledge)) return {problem, {who_of(stamp)}};
  return {};
}

SharedFinding SharedMemory::note_late_read(std::uint64_t address, std::size_t bytes, Stamp mine,
                                           const Knowledge& knowledge) {
  constexpr unsigned kNobody = Accessor::kSeveralWarps + 1;
  for (const Stamp write : granules(writes_, address, bytes)) {
    if (write < clocks_.block_begin()) return {SharedFinding::Problem::not_written, {}};
    if (!clocks_.is_ordered(write, kNobody, kNobody, knowledge))
      return {SharedFinding::Problem::unordered_write, {who_of(write)}};
    if (!clocks_.is_fenced(write)) return {SharedFinding::Problem::not_fenced, {who_of(write)}};
  }
  has_late_reads_ = true;
  second_reads_.resize(reads_.size());
  const std::span<Stamp> first = granules(reads_, address, bytes);
  const std::span<Stamp> second = granules(second_reads_, address, bytes);
  const auto can_be_replaced = [&](Stamp read) { return read < knowledge.bound || who_of(read) == who_of(mine); };
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (can_be_replaced(first[i]))
      first[i] = mine;
    else if (can_be_replaced(second[i]))
      second[i] = mine;
    else
      first[i] = merged(first[i], mine);
  }
  return {};
}

SharedFinding SharedMemory::unordered_reads(std::uint64_t address, std::size_t bytes, unsigned thread,
                                            const Knowledge& knowledge) {
  const SharedFinding finding =
      unordered(granules(reads_, address, bytes), thread, knowledge, SharedFinding::Problem::unordered_read);
  if (finding.problem != SharedFinding::Problem::none || !has_late_reads_) return finding;
  return unordered(granules(second_reads_, address, bytes), thread, knowledge, SharedFinding::Problem::unordered_read);
}

SharedFinding SharedMemory::note_atomic(std::uint64_t address, std::size_t bytes, unsigned thread) {
  // An atomic is ordered with other atomics: it is noted as a write of several warps, which only a plain access
  // contradicts.
  SharedFinding finding = note_read(address, bytes, thread);
  if (finding.problem == SharedFinding::Problem::unordered_write && !finding.other.is_thread()) finding = {};
  const Stamp mark = time_of(clocks_.stamp(thread)) << Accessor::kBits | Accessor::kSeveralWarps;
  std::ranges::fill(granules(writes_, address, bytes), mark);
  return finding;
}

}  // namespace gradring::simulated_gpu
