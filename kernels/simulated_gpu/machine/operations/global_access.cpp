// SPDX-License-Identifier: Apache-2.0
// Accesses of global memory: bounds, what was written, what blocks and warps do with it, sectors.
#include <cstring>

#include "kernels/simulated_gpu/machine/operations/access_checks.h"

namespace gradring::simulated_gpu {
namespace {

template <class T>
Mask silent_words(const Operation& operation, Warp& warp, Mask active, const Addresses& addresses) {
  const T* const values = warp.row<T>(operation.slots[0]);
  Mask silent = 0;
  for_lanes(active,
            [&](unsigned lane) { silent |= load_from<T>(addresses.lane[lane]) == values[lane] ? kLaneBits[lane] : 0; });
  return silent;
}

/// The lanes of st that write what is in global memory already: of interest only to those who tell findings apart.
Mask silent_lanes(const Operation& operation, Warp& warp, Mask active, const Addresses& addresses,
                  const AccessDetails* stored) {
  if (stored == nullptr) return 0;
  if (stored->elements == 1 && stored->bytes == stored->register_bytes && stored->bytes >= 4)
    return stored->bytes == 4 ? silent_words<std::uint32_t>(operation, warp, active, addresses)
                              : silent_words<std::uint64_t>(operation, warp, active, addresses);
  Mask silent = 0;
  for_each_lane(active, [&](unsigned lane) {
    const StoredBytes bytes = stored_bytes(operation, warp, *stored, lane);
    if (std::memcmp(bytes.data(), reinterpret_cast<const void*>(addresses.lane[lane]), stored->bytes) == 0)
      silent |= kLaneBits[lane];
  });
  return silent;
}

[[noreturn]] void fail_outside(const Operation& operation, Warp& warp, unsigned lane, Access access, unsigned bytes,
                               std::uint64_t address) {
  const GlobalMemory& memory = warp.block().global().memory();
  const bool is_of_another = memory.find(address, bytes) != nullptr;
  warp.fail(operation, lane,
            joined("global memory is ", verb(access),
                   (is_of_another ? " by a kernel of GPU " + std::to_string(warp.block().launch().device) +
                                        ", which cannot reach it: "
                                  : " out of bounds: "),
                   memory.describe(address, bytes)),
            FindingKind::out_of_bounds);
}

void touch_global(const Operation& operation, Warp& warp, unsigned lane, Access access, unsigned bytes,
                  const GlobalMemory::Block& block, std::uint64_t address) {
  std::uint8_t* const written = block.written.get() + (address - block.address);
  if (all_written(written, bytes)) return;  // nothing is noted again beside a block of another thread that polls it
  if (access != Access::write)
    note_unwritten(operation, warp, lane, written, bytes, StateSpace::global,
                   [&] { return warp.block().global().memory().describe(address, bytes); });
  if (access != Access::read) std::memset(written, 1, bytes);
}

void note_watched(const Operation& operation, Warp& warp, Mask active, unsigned bytes, const Addresses& addresses) {
  WriteWatch& watch = warp.block().global().memory().watch();
  for_each_lane(active, [&](unsigned lane) {
    if (watch.touches(addresses.lane[lane], bytes))
      watch.note(describe_location(warp, warp.block().program().position_of(operation), lane));
  });
}

/// Plain accesses of the lanes, beside those of other warps of the block.
void compare_in_block(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                      const Addresses& addresses, const Span& span, const AccessDetails* stored) {
  GlobalWords& words = *warp.block().global_words();
  AccessClocks& clocks = warp.block().shared().clocks();
  clocks.begin_access(warp.index());
  if (active == kAllLanes && span.is_consecutive &&
      words.note_warp(span.first, bytes, access == Access::write, warp.index(), clocks)) [[likely]]
    return;
  for_each_lane(active, [&](unsigned lane) {
    const auto race = words.note(addresses.lane[lane], bytes, access == Access::write, warp.thread_index(lane), clocks);
    if (!race) [[likely]]
      return;
    const bool is_same = access == Access::write && race->was_write &&
                         silent_lanes(operation, warp, kLaneBits[lane], addresses, stored) != 0;
    note_finding(warp, is_same ? FindingKind::same_value : FindingKind::global_race, operation, lane, [&] {
      return joined("race in global memory: ", warp.block().global().memory().describe(addresses.lane[lane], bytes),
                    ", are ", verb(access), ", and were ", race->was_write ? "written" : "read", " by ",
                    describe_thread_of_block(warp, race->other.who), " of the block without a barrier in between");
    });
  });
}

void note_access(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                 const Addresses& addresses, const Span& span, std::uint64_t allocation, const AccessDetails* stored) {
  GlobalAccesses* const accesses = warp.block().accesses();
  if (accesses == nullptr) return;
  const Mask silent = warp.block().findings() != nullptr && access == Access::write
                          ? silent_lanes(operation, warp, active, addresses, stored)
                          : 0;
  accesses->note(operation, warp.index(), access, active, bytes, addresses.lane, span.first, span.last + bytes,
                 span.is_consecutive, allocation, silent);
  GlobalWords* const words = warp.block().global_words();
  if (words == nullptr) [[likely]]
    return;
  if (accesses->order_of(operation).orders_block)
    words->stop();
  else if (access != Access::atomic && bytes >= 4 && accesses->is_plain_on_written(operation, allocation))
    compare_in_block(operation, warp, active, access, bytes, addresses, span, stored);
}

void count_global(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                  const Addresses& addresses, const Span& span) {
  const std::size_t extent = span.last - span.first + bytes;
  count_sectors(counters_of(operation, warp), active, bytes, addresses, span);
  if (!warp.block().counts_sectors()) [[likely]]
    return;
  Counters& counters = warp.block().counters();
  const auto add = [&](std::uint64_t address, std::size_t size) {
    if (access != Access::write) Counters::add_sectors(counters.read_sectors, address, size);
    if (access != Access::read) Counters::add_sectors(counters.written_sectors, address, size);
  };
  if (span.is_consecutive) return add(span.first, extent);
  for_each_lane(active, [&](unsigned lane) { add(addresses.lane[lane], bytes); });
}

}  // namespace

/// Constant memory is read through a cache of its own, so it is not counted as traffic of global memory.
bool resolve_constant(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                      Addresses& addresses) {
  const Span span = span_of(addresses, bytes);
  check_alignment(operation, warp, active, bytes, addresses, span, "constant");
  const bool is_one_address = span.first == span.last;
  for_each_lane(is_one_address ? kLaneBits[lowest_lane(active)] : active, [&](unsigned lane) {
    const std::uint64_t address = addresses.lane[lane];
    const GlobalMemory::Block* const block = warp.block().global().find(address, bytes);
    if (block == nullptr || access != Access::read)
      warp.fail(operation, lane,
                joined("constant memory is ", verb(access), block == nullptr ? " out of bounds: " : ": ",
                       warp.block().global().memory().describe(address, bytes)),
                FindingKind::out_of_bounds);
    note_access(operation, warp, kLaneBits[lane], access, bytes, addresses, {.first = address, .last = address},
                block->address, nullptr);
  });
  return is_one_address;
}

bool resolve_global(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                    Addresses& addresses, const AccessDetails* stored) {
  const Span span = span_of(addresses, bytes);
  check_alignment(operation, warp, active, bytes, addresses, span, "global");
  const std::size_t extent = span.last - span.first + bytes;
  count_global(operation, warp, active, access, bytes, addresses, span);
  if (access != Access::read && warp.block().global().memory().watch().touches(span.first, extent)) [[unlikely]]
    note_watched(operation, warp, active, bytes, addresses);
  const GlobalMemory::Block* const block = warp.block().global().find(span.first, extent);
  if (block == nullptr) [[unlikely]] {
    for_each_lane(active, [&](unsigned lane) {
      const std::uint64_t address = addresses.lane[lane];
      const GlobalMemory::Block* const own = warp.block().global().find(address, bytes);
      if (own == nullptr) fail_outside(operation, warp, lane, access, bytes, address);
      touch_global(operation, warp, lane, access, bytes, *own, address);
      note_access(operation, warp, kLaneBits[lane], access, bytes, addresses, {.first = address, .last = address},
                  own->address, stored);
    });
    return false;
  }
  const bool is_one_address = span.first == span.last;
  note_access(operation, warp, active, access, bytes, addresses, span, block->address, stored);
  std::uint8_t* const written = block->written.get() + (span.first - block->address);
  const bool is_dense = extent <= std::size_t{kWarpSize} * bytes;
  if (access == Access::read) {
    if (is_dense && all_written(written, extent)) [[likely]]
      return is_one_address;
  } else if (access == Access::write && active == kAllLanes && span.is_consecutive) {
    std::memset(written, 1, extent);
    return false;
  }
  if (is_one_address && all_written(written, bytes)) return true;
  for_each_lane(
      active, [&](unsigned lane) { touch_global(operation, warp, lane, access, bytes, *block, addresses.lane[lane]); });
  return is_one_address;
}

void count_global_reads(const Operation& operation, Warp& warp, Mask active, unsigned bytes,
                        const Addresses& addresses) {
  if (active == 0) return;
  Addresses own = addresses;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if ((active & kLaneBits[lane]) == 0) own.lane[lane] = addresses.lane[lowest_lane(active)];
  count_global(operation, warp, active, Access::read, bytes, own, span_of(own, bytes));
}

void check_global_read(const Operation& operation, Warp& warp, unsigned lane, unsigned bytes, std::uint64_t address) {
  const GlobalMemory::Block* const block = warp.block().global().find(address, bytes);
  if (block == nullptr) fail_outside(operation, warp, lane, Access::read, bytes, address);
  touch_global(operation, warp, lane, Access::read, bytes, *block, address);
  if (GlobalAccesses* const accesses = warp.block().accesses())
    accesses->note_read(operation, address, address + bytes, block->address);
}

}  // namespace gradring::simulated_gpu
