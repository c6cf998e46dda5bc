// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/shared_memory.h"

#include <algorithm>
#include <bit>

namespace gradring::simulated_gpu {
namespace {

using Problem = SharedFinding::Problem;

/// What a warp's stamp of a granule becomes when its thread accesses it (`mine`). What its lanes did before they were
/// ordered says nothing more.
Stamp merged(Stamp stamp, Stamp mine, Stamp lanes_ordered) {
  if (stamp < lanes_ordered || who_of(stamp) == who_of(mine)) return mine;
  return (mine >> Accessor::kBits << Accessor::kBits) | (Accessor::kSeveralLanes + Accessor{who_of(mine)}.warp());
}

/// note.operator()<granules>(), for accesses of 1, 2, 4 or 8 of them.
template <class Note>
bool for_granules(std::size_t granules, const Note& note) {
  switch (granules) {
    case 1: return note.template operator()<1>();
    case 2: return note.template operator()<2>();
    case 4: return note.template operator()<4>();
    case 8: return note.template operator()<8>();
    default: return false;
  }
}

}  // namespace

void SharedMemory::begin_block(std::size_t bytes, std::size_t granule_bytes, unsigned warps, bool checks_races) {
  const unsigned shift = static_cast<unsigned>(std::countr_zero(granule_bytes));
  const std::size_t count = (bytes >> shift) + 1;
  if (shift != granule_shift_ || count > writes_.size() || clocks_.is_exhausted()) {
    granule_shift_ = shift;
    writes_.assign(std::max(count, writes_.size()), 0);
    for (Rows* rows : {&reads_, &strong_reads_, &atomics_})
      for (std::vector<Stamp>& stamps : rows->stamps) stamps.clear();
    clocks_.begin_again();
  }
  reads_.used = strong_reads_.used = atomics_.used = 0;
  order_.clear();
  bytes_.resize(bytes);  // what earlier blocks left is never read: it is not written
  clocks_.begin_block(warps, checks_races);
}

SharedFinding SharedMemory::find_unordered(const Stamp* stamps, Range range, const Access& access,
                                           Problem problem) const {
  for (std::size_t i = range.first; i < range.end; ++i)
    if (!is_ordered(stamps[i], access)) [[unlikely]]
      return {problem, {who_of(stamps[i])}};
  return {};
}

SharedFinding SharedMemory::find_unordered(const Rows& rows, Range range, const Access& access, Problem problem) const {
  const Knowledge& knowledge = access.knowledge == nullptr ? clocks_.knowledge(access.warp) : *access.knowledge;
  for (std::uint64_t open = clocks_.unknown(rows.used, access.warp, knowledge); open != 0; open &= open - 1) {
    const Stamp* const stamps = rows.stamps[static_cast<std::size_t>(std::countr_zero(open))].data();
    const SharedFinding finding = find_unordered(stamps, range, access, problem);
    if (finding.problem != Problem::none) [[unlikely]]
      return finding;
  }
  return {};
}

void SharedMemory::mark(Rows& rows, Range range, unsigned thread) {
  const unsigned warp = thread / kWarpSize;
  Stamp* const stamps = rows.of(warp, writes_.size());
  const Stamp mine = clocks_.stamp(thread);
  const Stamp ordered = clocks_.lanes_ordered_before(warp);
  for (std::size_t i = range.first; i < range.end; ++i)
    stamps[i] = clocks_.is_ordered(stamps[i], thread) ? mine : merged(stamps[i], mine, ordered);
}

SharedFinding SharedMemory::note_use(std::uint64_t address, std::size_t bytes, unsigned thread, Rows& own,
                                     const Rows* others, Problem problem) {
  const Range range = range_of(address, bytes);
  const Access access{.warp = thread / kWarpSize, .self = thread};
  std::size_t unwritten = 0;
  for (std::size_t i = range.first; i < range.end; ++i) unwritten += writes_[i] < clocks_.block_begin() ? 1 : 0;
  if (unwritten != 0)
    return {unwritten == range.end - range.first ? Problem::not_written : Problem::partly_written, {}};
  mark(own, range, thread);
  const SharedFinding finding = find_unordered(writes_.data(), range, access, Problem::unordered_write);
  if (finding.problem != Problem::none || others == nullptr) return finding;
  return find_unordered(*others, range, access, problem);
}

SharedFinding SharedMemory::note_strong_write(std::uint64_t address, std::size_t bytes, unsigned thread) {
  const Range range = range_of(address, bytes);
  for (std::size_t i = range.first; i < range.end; ++i)
    if (writes_[i] < clocks_.block_begin())
      writes_[i] = clocks_.remote_stamp();  // written, and ordered with everything
  return note_atomic(address, bytes, thread);
}

SharedFinding SharedMemory::find_unordered_use(Range range, const Access& access) const {
  SharedFinding finding = find_unordered(writes_.data(), range, access, Problem::unordered_write);
  for (const Rows* reads : {&reads_, &strong_reads_})
    if (finding.problem == Problem::none) finding = find_unordered(*reads, range, access, Problem::unordered_read);
  if (finding.problem == Problem::none) finding = find_unordered(atomics_, range, access, Problem::unordered_write);
  return finding;
}

SharedFinding SharedMemory::note_write(std::uint64_t address, std::size_t bytes, unsigned thread) {
  const Range range = range_of(address, bytes);
  const Access access{.warp = thread / kWarpSize, .self = thread};
  SharedFinding finding = find_unordered_use(range, access);
  std::fill(writes_.begin() + static_cast<std::ptrdiff_t>(range.first),
            writes_.begin() + static_cast<std::ptrdiff_t>(range.end), clocks_.stamp(thread));
  return finding;
}

SharedFinding SharedMemory::note_late_write(std::uint64_t address, std::size_t bytes, unsigned thread, Stamp mine,
                                            const Knowledge& knowledge) {
  const Range range = range_of(address, bytes);
  const Access access{thread / kWarpSize, thread, &knowledge};
  SharedFinding finding = find_unordered_use(range, access);
  const bool is_asynchronous = !Accessor{who_of(mine)}.is_thread();
  for (std::size_t i = range.first; i < range.end; ++i) {
    if (is_asynchronous && finding.problem == Problem::none && writes_[i] >= clocks_.block_begin() &&
        !clocks_.is_fenced(writes_[i]))
      finding = {Problem::not_fenced, {who_of(writes_[i])}};
    writes_[i] = mine;
  }
  return finding;
}

SharedFinding SharedMemory::note_late_read(std::uint64_t address, std::size_t bytes, Stamp mine,
                                           const Knowledge& knowledge) {
  const Range range = range_of(address, bytes);
  const Access access{kNobody, kNobody, &knowledge};
  Stamp* const reads = reads_.of(Accessor{who_of(mine)}.warp(), writes_.size());
  for (std::size_t i = range.first; i < range.end; ++i) {
    const Stamp write = writes_[i];
    if (write < clocks_.block_begin()) return {Problem::not_written, {}};
    if (!is_ordered(write, access)) return {Problem::unordered_write, {who_of(write)}};
    if (!clocks_.is_fenced(write)) return {Problem::not_fenced, {who_of(write)}};
    reads[i] = mine;
  }
  return find_unordered(atomics_, range, access, Problem::unordered_write);
}

template <unsigned kGranules>
bool SharedMemory::note_warp_read_of(const std::uint64_t* addresses, Mask lanes, unsigned warp) {
  const Stamp known = clocks_.ordered_before(warp * kWarpSize);
  const Stamp lanes_ordered = clocks_.lanes_ordered_before(warp);
  const Stamp first = clocks_.stamp(warp * kWarpSize);
  Stamp* const row = reads_.of(warp, writes_.size());
  Stamp lowest[kGranules];
  Stamp highest[kGranules] = {};
  std::ranges::fill(lowest, ~Stamp{0});
  for_each_lane(lanes, [&](unsigned lane) {
    const std::size_t granule = (addresses[lane] - kFirstSharedAddress) >> granule_shift_;
    const Stamp* const writes = writes_.data() + granule;
    Stamp* const reads = row + granule;
    const Stamp mine = first + lane;
    for (unsigned i = 0; i < kGranules; ++i) {
      lowest[i] = std::min(lowest[i], writes[i]);
      highest[i] = std::max(highest[i], writes[i]);
      reads[i] = merged(reads[i], mine, lanes_ordered);
    }
  });
  return std::ranges::min(lowest) >= clocks_.block_begin() && std::ranges::max(highest) < known;
}

template <unsigned kGranules>
bool SharedMemory::note_warp_write_of(const std::uint64_t* addresses, Mask lanes, unsigned warp) {
  const auto granule_of = [&](unsigned lane) { return (addresses[lane] - kFirstSharedAddress) >> granule_shift_; };
  Stamp highest = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    for (unsigned i = 0; i < kGranules; ++i) highest = std::max(highest, writes_[granule_of(lane) + i]);
  });
  if (highest >= clocks_.ordered_before(warp * kWarpSize)) return false;
  const Knowledge& knowledge = clocks_.knowledge(warp);
  for (std::uint64_t open = clocks_.unknown(reads_.used, warp, knowledge); open != 0; open &= open - 1) {
    const auto actor = static_cast<unsigned>(std::countr_zero(open));
    const Stamp* const row = reads_.stamps[actor].data();
    Stamp latest = 0;
    for_each_lane(lanes, [&](unsigned lane) {
      for (unsigned i = 0; i < kGranules; ++i) latest = std::max(latest, row[granule_of(lane) + i]);
    });
    if (time_of(latest) > knowledge.until(actor, warp)) return false;
  }
  const Stamp first = clocks_.stamp(warp * kWarpSize);
  Stamp overwritten = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    Stamp* const writes = writes_.data() + granule_of(lane);
    for (unsigned i = 0; i < kGranules; ++i) {
      overwritten = std::max(overwritten, writes[i]);
      writes[i] = first + lane;
    }
  });
  return overwritten < first;  // else two lanes write the same bytes
}

bool SharedMemory::note_warp_read(const std::uint64_t* addresses, Mask lanes, std::size_t bytes, unsigned warp) {
  return atomics_.used == 0 && for_granules(bytes >> granule_shift_, [&]<unsigned kGranules> {
           return note_warp_read_of<kGranules>(addresses, lanes, warp);
         });
}

bool SharedMemory::note_warp_write(const std::uint64_t* addresses, Mask lanes, std::size_t bytes, unsigned warp) {
  return (atomics_.used | strong_reads_.used) == 0 && for_granules(bytes >> granule_shift_, [&]<unsigned kGranules> {
           return note_warp_write_of<kGranules>(addresses, lanes, warp);
         });
}

}  // namespace gradring::simulated_gpu
