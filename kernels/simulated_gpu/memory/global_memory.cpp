// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/global_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kMostFreed = 4096;  // blocks that are remembered, so that a late access can be explained
constexpr int kNoDevice = -1;             // of pageable memory

struct Freed {
  std::size_t bytes = 0;
  int device = 0;
  std::uint64_t order = 0;
};

/// Of a report, before the address and behind it.
struct RaceText {
  const char* what;
  const char* why;
};
constexpr RaceText kBetweenStreams = {"race between streams or with the host: ",
                                      ", and no event or wait puts these in an order:"};
constexpr RaceText kBeforeWait = {"race with a launch that may still run: ",
                                  ", and the second of these is not behind griddepcontrol.wait:"};

std::string location_of(int device, bool is_pinned_host) {
  if (device == kNoDevice) return "pageable host memory";
  return is_pinned_host ? "pinned host memory" : "GPU " + std::to_string(device);
}

}  // namespace

struct GlobalMemory::Parts {
  std::atomic<std::uint64_t>& generation;
  bool checks_order = false;
  PageableMemory* pageable = nullptr;
  mutable std::mutex uses_mutex;  ///< of all blocks' uses
  WorkLog log;
  ReportRace report_race;
  WrotePinned wrote_pinned;
  mutable std::shared_mutex mutex;
  std::map<std::uint64_t, Block> blocks;  ///< by address
  std::map<std::uint64_t, Freed> freed;

  /// The last block that begins at the address or before it; null without such a block.
  const Block* before(std::uint64_t address) const {
    const auto next = blocks.upper_bound(address);
    return next == blocks.begin() ? nullptr : &std::prev(next)->second;
  }
  const Block* with(std::uint64_t address, std::size_t bytes) const {
    const Block* const block = before(address);
    return block != nullptr && block->holds(address, bytes) ? block : nullptr;
  }
  void forget_freed(std::uint64_t address, std::size_t bytes) {
    auto first = freed.upper_bound(address);
    if (first != freed.begin() && std::prev(first)->first + std::prev(first)->second.bytes > address) --first;
    while (first != freed.end() && first->first < address + bytes) first = freed.erase(first);
  }
  void insert(const void* data, std::size_t bytes, int device, bool is_pinned_host) {
    Block block{.address = reinterpret_cast<std::uint64_t>(data),
                .bytes = bytes,
                .device = device,
                .is_pinned_host = is_pinned_host,
                .written = zeroed_array<std::uint8_t>(bytes)};
    if (is_pinned_host) std::memset(block.written.get(), 1, bytes);
    if (checks_order) block.uses = std::make_unique<BlockUses>(bytes);
    forget_freed(block.address, bytes);
    blocks.insert_or_assign(block.address, std::move(block));
    ++generation;
  }
  /// Within uses_mutex.
  void note(const GlobalMemory& memory, const Block* block, std::uint64_t address, std::size_t bytes, bool is_write,
            std::uint32_t entry, OrderCheck& check, const RaceText& text = kBetweenStreams) {
    if (block == nullptr || block->uses == nullptr) return;
    const auto race = block->uses->note(address - block->address, bytes, is_write, entry, check);
    if (!race) return;
    const CodeLocation before = log.describe(race->other), now = log.describe(entry);
    const auto user = [](const CodeLocation& of, bool writes) {
      return (writes ? "\n   written by " : "\n   read by ") + of.text;
    };
    const std::string users = user(before, race->was_write) + user(now, race->is_write);
    const std::string report =
        joined(text.what, memory.describe(block->address + race->offset, BlockUses::kWordBytes), text.why, users);
    if (!report_race) throw Fault(report);
    report_race(users, report, before, now);
  }
};

GlobalMemory::GlobalMemory(bool checks_order, PageableMemory* pageable)
    : parts_(new Parts{.generation = generation_, .checks_order = checks_order, .pageable = pageable}) {}
GlobalMemory::~GlobalMemory() = default;

void GlobalMemory::report_races(ReportRace report) { parts_->report_race = std::move(report); }

void GlobalMemory::watch_pinned(WrotePinned wrote) { parts_->wrote_pinned = std::move(wrote); }

void GlobalMemory::add(const void* data, std::size_t bytes, int device, bool is_pinned_host) {
  const std::unique_lock lock(parts_->mutex);
  parts_->insert(data, bytes, device, is_pinned_host);
}

void GlobalMemory::remove(const void* data) {
  const std::unique_lock lock(parts_->mutex);
  const auto found = parts_->blocks.find(reinterpret_cast<std::uint64_t>(data));
  if (found == parts_->blocks.end()) return;
  if (parts_->freed.size() >= kMostFreed)
    parts_->freed.erase(
        std::ranges::min_element(parts_->freed, {}, [](const auto& entry) { return entry.second.order; }));
  parts_->freed[found->first] = {found->second.bytes, found->second.device, generation_};
  parts_->blocks.erase(found);
  ++generation_;
}

const GlobalMemory::Block* GlobalMemory::find(std::uint64_t address, std::size_t bytes) const {
  {
    const std::shared_lock lock(parts_->mutex);
    if (const Block* const block = parts_->with(address, bytes)) return block;
  }
  if (parts_->pageable == nullptr) return nullptr;
  const PageableMemory::Range range = parts_->pageable->find(reinterpret_cast<const void*>(address));
  if (range.data == nullptr) return nullptr;
  const std::unique_lock lock(parts_->mutex);
  if (!parts_->with(reinterpret_cast<std::uint64_t>(range.data), range.bytes))
    parts_->insert(range.data, range.bytes, kNoDevice, true);
  return parts_->with(address, bytes);
}

std::uint64_t GlobalMemory::begin_of(std::uint64_t address) const {
  const std::shared_lock lock(parts_->mutex);
  const Block* const block = parts_->with(address, 1);
  return block == nullptr ? 0 : block->address;
}

std::string GlobalMemory::describe(std::uint64_t address, std::size_t bytes) const {
  const std::shared_lock lock(parts_->mutex);
  std::ostringstream text;
  text << bytes << (bytes == 1 ? " byte" : " bytes") << " at 0x" << std::hex << address << std::dec;
  if (const auto next = parts_->freed.upper_bound(address); next != parts_->freed.begin()) {
    const auto& [begin, freed] = *std::prev(next);
    if (address - begin < freed.bytes) {
      text << ", " << address - begin << " bytes into a block of " << freed.bytes << " bytes of GPU " << freed.device
           << " that was freed";
      return text.str();
    }
  }
  const Block* const before = parts_->before(address);
  const auto next = parts_->blocks.upper_bound(address);
  const auto of = [](const Block& block) {
    return joined("a block of ", block.bytes, " bytes of ", location_of(block.device, block.is_pinned_host));
  };
  if (before != nullptr && address - before->address < before->bytes)
    text << ", " << address - before->address << " bytes into " << of(*before);
  else if (before != nullptr && (next == parts_->blocks.end() ||
                                 address - before->address - before->bytes <= next->second.address - address))
    text << ", " << address - before->address - before->bytes << " bytes behind the end of " << of(*before);
  else if (next != parts_->blocks.end())
    text << ", " << next->second.address - address << " bytes before " << of(next->second);
  else
    text << ", and no memory is allocated";
  return text.str();
}

void GlobalMemory::mark_written(std::uint64_t address, std::size_t bytes) {
  if (const Block* const block = find(address, bytes))
    std::memset(block->written.get() + (address - block->address), 1, bytes);
}

bool GlobalMemory::is_written(std::uint64_t address, std::size_t bytes) const {
  const Block* const block = find(address, bytes);
  if (block == nullptr) return true;
  const std::uint8_t* const first = block->written.get() + (address - block->address);
  return std::all_of(first, first + bytes, [](std::uint8_t written) { return written != 0; });
}

void GlobalMemory::note_kernel(const AccessLog& accesses, const WorkLog::Describe& describe) {
  if (!parts_->checks_order || current_work == nullptr) return;
  current_work->release = accesses.release();
  std::vector<std::uint32_t> entries;  // by position; 0: none yet
  const Block* block = nullptr;        // of the access before, or of this one
  std::uint64_t generation_then = 0;
  const std::lock_guard lock(parts_->uses_mutex);
  const auto note = [&](const std::vector<AccessLog::Access>& list, OrderCheck check, const RaceText& text) {
    for (const AccessLog::Access& access : list) {
      if (access.position >= entries.size()) entries.resize(access.position + 1);
      std::uint32_t& entry = entries[access.position];
      if (entry == 0) entry = parts_->log.add(*current_work, describe, access.position);
      const std::size_t bytes = access.end - access.first;
      const std::uint64_t generation_now = generation();
      if (generation_now != generation_then || block == nullptr || !block->holds(access.first, bytes))
        block = find(access.first, bytes);
      generation_then = generation_now;
      const bool is_write = access.kind != AccessLog::Kind::read;
      const bool is_pinned = block != nullptr && block->is_pinned_host && block->device != kNoDevice;
      if (is_write && is_pinned && parts_->wrote_pinned) parts_->wrote_pinned(access.first, bytes);
      parts_->note(*this, block, access.first, bytes, is_write, entry, check, text);
    }
  };
  if (current_work->before_wait) {
    const OrderedWork begin{
        .number = current_work->number, .lane = current_work->lane, .before = *current_work->before_wait};
    note(accesses.early(), OrderCheck(parts_->log, begin), kBeforeWait);
  }
  note(accesses.reads(), OrderCheck(parts_->log, *current_work), kBetweenStreams);
  note(accesses.writes(), OrderCheck(parts_->log, *current_work), kBetweenStreams);
}

void GlobalMemory::note_use(std::uint64_t address, std::size_t bytes, bool is_write, const std::string& name) {
  if (is_write && watch_.touches(address, bytes)) watch_.note(name);
  if (!parts_->checks_order || current_work == nullptr) return;
  OrderCheck check(parts_->log, *current_work);
  const std::uint32_t entry =
      parts_->log.add(*current_work, [name](std::uint32_t) { return CodeLocation{.text = name}; });
  const std::lock_guard lock(parts_->uses_mutex);
  parts_->note(*this, find(address, bytes), address, bytes, is_write, entry, check);
}

std::uint32_t GlobalMemory::newest_writer(std::uint64_t address, std::size_t bytes) const {
  const Block* const block = find(address, bytes);
  if (block == nullptr || block->uses == nullptr) return 0;
  const std::lock_guard lock(parts_->uses_mutex);
  return block->uses->newest_writer(address - block->address, bytes);
}

}  // namespace gradring::simulated_gpu
