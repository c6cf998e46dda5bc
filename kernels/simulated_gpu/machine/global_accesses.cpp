// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/global_accesses.h"

#include <cstring>
#include <utility>

#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

/// Of the log's memory, that is taken at once: host threads share it.
constexpr std::size_t kTakenBytes = 1024;

}  // namespace

GlobalAccesses::GlobalAccesses(const Program& program, const LaunchSpec& launch, const GlobalMemory& memory,
                               RaceSearch& races)
    : program_(program), launch_(launch), memory_(memory), races_(races) {}

void GlobalAccesses::begin_launch() {
  used_.assign(program_.operations.size(), {});
  written_.clear();
  early_.clear();
  log_ = {};
  room_ = 0;
  for (const auto& [position, access] : program_.orders) used_[position].order = access;
  for (const std::size_t offset : program_.written_parameters->offsets())
    if (const std::uint64_t allocation = allocation_at(offset); allocation != 0) written_.push_back(allocation);
}

void GlobalAccesses::begin_block(std::uint64_t block) {
  block_ = block;
  segment_ = fenced_segments_ = 0;
  known_ = fenced_ = nullptr;
  observed_before_fence_.clear();
  observed_.clear();
  has_waited_ = !launch_.begins_early;
}

std::uint64_t GlobalAccesses::allocation_at(std::size_t offset) const {
  std::uint64_t pointer = 0;
  if (offset + sizeof pointer > launch_.parameters.size()) return 0;  // it is one of an earlier launch
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
  if (kind == AccessLog::Kind::atomic && !program_.orders.contains(position))
    used.order = {.is_strong = true, .is_plain = false};
  used.is_exact = kind != AccessLog::Kind::read || (is_known && !races_.log.is_half_taken());
  if (!std::exchange(used.is_in_segment, true)) in_segment_.push_back(position);
}

bool GlobalAccesses::has_room() {
  if (room_ < sizeof(AccessLog::Access)) {
    if (!races_.log.take(kTakenBytes)) return false;
    room_ += kTakenBytes;
  }
  room_ -= sizeof(AccessLog::Access);
  return true;
}

std::optional<std::uint32_t> GlobalAccesses::add_segment(std::uint32_t number) {
  if (!races_.log.take(sizeof(AccessLog::Segment))) return std::nullopt;
  return log_.add_segment({.number = number, .known = known_});
}

void GlobalAccesses::end_segment() {
  if (in_segment_.empty()) return;
  std::optional<std::uint32_t> weak = 0;
  std::optional<std::uint32_t> strong = 0;
  // A strong access after a fence belongs to what it publishes: whoever observes it comes after it.
  if (segment_ != 0 || known_ != nullptr) {
    weak = add_segment(segment_);
    strong = fenced_ == nullptr ? weak : add_segment(fenced_segments_ - 1);
  }
  for (const std::size_t position : in_segment_) {
    Used& used = used_[position];
    const bool is_strong = used.order.is_strong;
    const std::optional<std::uint32_t> segment = is_strong ? strong : weak;
    const auto add = [&](const ByteSet::Range& range, bool is_silent) {
      if (!segment || !has_room()) return;
      log_.add({.first = range.first,
                .end = range.end,
                .block = block_,
                .position = static_cast<std::uint32_t>(position),
                .kind = used.kind,
                .is_strong = is_strong,
                .is_swap = used.order.is_swap,
                .is_read_only = used.kind == AccessLog::Kind::read && program_.read_only_loads.contains(position),
                .is_silent = is_silent,
                .segment = *segment});
    };
    used.silent.remove(used.bytes);
    used.bytes.take([&](const ByteSet::Range& range) { add(range, false); });
    used.silent.take([&](const ByteSet::Range& range) { add(range, true); });
    used.is_in_segment = false;
  }
  in_segment_.clear();
}

BlockOrder::Clock GlobalAccesses::known_and_own() const {
  BlockClock clock = BlockClock::of(block_, segment_ + 1);
  if (known_ != nullptr) clock.add(*known_);
  return races_.order.keep(std::move(clock));
}

void GlobalAccesses::note_fence(unsigned warp) {
  take_over();
  BlockClock known = known_ == nullptr ? BlockClock{} : *known_;
  bool learns = false;
  if (const auto observed = observed_before_fence_.find(warp); observed != observed_before_fence_.end()) {
    learns = known.add(*observed->second);
    observed_before_fence_.erase(observed);
  }
  if (in_segment_.empty() && !learns && fenced_ != nullptr && fenced_segments_ == segment_) return;
  end_segment();
  if (learns) known_ = races_.order.keep(std::move(known));
  fenced_ = known_and_own();
  fenced_segments_ = ++segment_;
}

void GlobalAccesses::join(std::span<GlobalAccesses* const> blocks) {
  if (blocks.empty()) return;  // races are not looked for
  BlockClock all;
  for (GlobalAccesses* const block : blocks) {
    block->take_over();
    block->end_segment();
    all.add(*block->known_and_own());
    ++block->segment_;
  }
  const BlockOrder::Clock known = blocks.front()->races_.order.keep(std::move(all));
  for (GlobalAccesses* const block : blocks) block->known_ = known;
}

void GlobalAccesses::synchronize(const Used& used, unsigned warp, Mask active, const std::uint64_t* addresses) {
  const bool writes = used.kind != AccessLog::Kind::read;
  const bool is_update = used.kind == AccessLog::Kind::atomic;
  BlockOrder::Clock published = fenced_;
  const MemoryOrder order = used.order;  // the segment ends below
  if (writes && order.is_release) {
    end_segment();
    published = known_and_own();
    ++segment_;
  }
  if (published == nullptr && !races_.order.is_used()) return;
  std::uint64_t last = 0;
  for_each_lane(active, [&](unsigned lane) {
    if (std::exchange(last, addresses[lane]) == addresses[lane]) return;
    if (writes) races_.order.publish(addresses[lane], published, is_update);
    // An atom that returns a value counts as an acquire: threadFenceReduction of cuda-samples has no fence behind it.
    const bool observes = is_update && !order.returns_none;
    if (!writes || observes) observed_.push_back({addresses[lane], warp, order.is_acquire || observes});
  });
}

void GlobalAccesses::note_before_fence(unsigned warp, const BlockOrder::Clock& published) {
  BlockOrder::Clock& observed = observed_before_fence_[warp];
  if (observed == nullptr) {
    observed = published;
    return;
  }
  BlockClock all = *observed;
  if (all.add(*published)) observed = races_.order.keep(std::move(all));
}

void GlobalAccesses::take_over() {
  if (observed_.empty()) return;
  BlockClock known = known_ == nullptr ? BlockClock{} : *known_;
  bool learns = false;
  for (const Observed& observed : observed_)
    if (const BlockOrder::Clock published = races_.order.published(observed.address); published != nullptr) {
      if (observed.is_acquire)
        learns |= known.add(*published);
      else
        note_before_fence(observed.warp, published);
    }
  observed_.clear();
  if (!learns) return;
  end_segment();
  ++segment_;
  known_ = races_.order.keep(std::move(known));
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

void GlobalAccesses::note_early(const Operation& operation, AccessLog::Kind kind, Mask active, unsigned bytes,
                                const std::uint64_t* addresses, std::uint64_t first, std::uint64_t end,
                                bool is_consecutive) {
  Early& early = early_[program_.position_of(operation)];
  early.kind = kind;
  add_lanes(early.bytes, active, bytes, addresses, first, end, is_consecutive);
}

void GlobalAccesses::add_early(Early& early, std::size_t position) {
  early.bytes.take([&](const ByteSet::Range& range) {
    if (!has_room()) return;
    log_.add_early(
        {.first = range.first, .end = range.end, .position = static_cast<std::uint32_t>(position), .kind = early.kind});
  });
}

FindingKind kind_of(const AccessLog::Conflict& conflict) {
  if (conflict.later.is_read_only) return FindingKind::read_only_load;
  return conflict.is_same_value ? FindingKind::same_value : FindingKind::block_race;
}

std::string describe_race(const Program& program, const Extent& grid, const GlobalMemory& memory,
                          const AccessLog::Conflict& conflict) {
  const auto by = [&](const AccessLog::Access& access) {
    return joined(verb(access.kind), " by block ", text_of(extent_at(grid, access.block)), "\n   ",
                  describe_instruction(program, access.position));
  };
  const FindingKind kind = kind_of(conflict);
  const bool is_read_only = kind == FindingKind::read_only_load;
  return (is_read_only ? "a read-only load of what the launch writes: " : "race in global memory: ") +
         memory.describe(conflict.first, conflict.end - conflict.first) + ", are " + by(conflict.earlier) +
         "\n   and " + by(conflict.later) + "\n   of the same launch of " + kernel_label(*program.kernel) +
         (is_read_only                      ? ": ld.global.nc may return what was there before"
          : kind == FindingKind::same_value ? ": both write the same value, and nothing orders them"
                                            : ": nothing orders blocks");
}

}  // namespace gradring::simulated_gpu
