// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/warp.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/cluster.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kFrameAlignment = 64;
/// Instructions that a fragment executes while another one that waits has given way.
constexpr std::uint64_t kFairTurn = 512;
/// Instructions of a warp after which its other fragments have a turn, whatever the one that runs does.
constexpr std::uint64_t kLongestUnshared = std::uint64_t{1} << 22;

void fill(std::byte* frame, Slot slot, unsigned width, unsigned lane, std::uint64_t bits) {
  std::byte* const row = frame + slot;
  switch (width) {
    case 2: reinterpret_cast<std::uint16_t*>(row)[lane] = static_cast<std::uint16_t>(bits); break;
    case 4: reinterpret_cast<std::uint32_t*>(row)[lane] = static_cast<std::uint32_t>(bits); break;
    default: reinterpret_cast<std::uint64_t*>(row)[lane] = bits; break;
  }
}

/// Fills a row with one value for all lanes.
void fill(std::byte* frame, Slot slot, unsigned width, std::uint64_t bits) {
  std::byte* const row = frame + slot;
  switch (width) {
    case 2: std::fill_n(reinterpret_cast<std::uint16_t*>(row), kWarpSize, static_cast<std::uint16_t>(bits)); break;
    case 4: std::fill_n(reinterpret_cast<std::uint32_t*>(row), kWarpSize, static_cast<std::uint32_t>(bits)); break;
    default: std::fill_n(reinterpret_cast<std::uint64_t*>(row), kWarpSize, bits); break;
  }
}

/// Whether a fragment that waited for others of its warp executes the instruction again.
bool is_called_again(const Fragment& fragment) {
  return fragment.state == Fragment::State::at_collective && fragment.lanes != fragment.waited;
}

}  // namespace

Warp::Warp(Block& block, unsigned index)
    : block_(block),
      program_(block.program()),
      index_(index),
      memory_(std::make_unique<std::byte[]>(program_.frame_bytes + kFrameAlignment)),
      local_bytes_(program_.local_bytes),
      local_(kWarpSize * local_bytes_),
      local_written_(kWarpSize * local_bytes_),
      calls_(program_) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
  frame_ = memory_.get() + (kFrameAlignment - address % kFrameAlignment) % kFrameAlignment;
  for (const ConstantRow& row : program_.constants)
    if (row.width == 0) {
      predicate(row.slot) = static_cast<Mask>(row.bits);
    } else {
      fill(frame_, row.slot, row.width, row.bits);
    }
}

void Warp::begin_launch() {
  for (const SpecialRow& row : program_.specials)
    if (!row.differs_by_block) fill_special(row);
}

void Warp::fill_special(const SpecialRow& row) {
  if (row.width == 0) {
    predicate(row.slot) = row.value(*this, 0, row.argument) != 0 ? kAllLanes : 0;
    return;
  }
  if (row.differs_by_block) return fill(frame_, row.slot, row.width, row.value(*this, 0, row.argument));
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    fill(frame_, row.slot, row.width, lane, row.value(*this, lane, row.argument));
}

void Warp::begin_block() {
  for (const SpecialRow& row : program_.specials)
    if (row.differs_by_block) fill_special(row);
  const std::uint64_t threads = std::min<std::uint64_t>(block_.launch().block.count() - index_ * kWarpSize, kWarpSize);
  living_ = threads == kWarpSize ? kAllLanes : (Mask{1} << threads) - 1;
  position_ = program_.kernel->entry;
  lanes_ = living_;
  limit_ = kNoLimit;
  others_.clear();
  polls_.clear();
  gives_way_ = is_fair_ = false;
  turns_ = 0;
  unshared_ = unprobed_ = 0;
  is_in_loop_ = false;
  copies_.clear();
  bulk_stores_.clear();
  calls_.clear();
  std::ranges::fill(local_written_, std::uint8_t{0});
}

Extent Warp::thread(unsigned lane) const { return extent_at(block_.launch().block, thread_index(lane)); }

Warp::Stop Warp::run(std::uint64_t quantum) {
  const bool was_fair = is_fair_;
  const Stop stop = execute(was_fair ? std::min(quantum, kFairTurn) : quantum);
  if (stop != Stop::quantum_over) return stop;
  if (was_fair) end_fair_turn();
  share_with_fragments();
  return Stop::quantum_over;
}

Warp::Stop Warp::execute(std::uint64_t quantum) {
  const Operation* const operations = program_.operations.data();
  Counters::Instruction* const counters = block_.counters().instructions.data();
  for (std::uint64_t rest = quantum; rest > 0; --rest) {
    if (position_ >= limit_ && !regroup()) [[unlikely]] {
      executed_ = quantum - rest;
      return why_stopped();
    }
    const Operation& operation = operations[position_];
    const Mask active = lanes_ & (predicate(operation.guard) ^ operation.guard_flip);
    ++counters[position_].executions;
    counters[position_].lanes += static_cast<unsigned>(std::popcount(active));
    ++position_;
    if (active != 0) operation.execute(operation, *this, active);
  }
  executed_ = quantum;
  return Stop::quantum_over;
}

/// Threads of the warp have ended, and others live: instructions and barriers that count non-exited threads alone may
/// be complete without them.
void Warp::note_end(Mask ended) {
  for (Fragment& fragment : others_)
    if (fragment.state == Fragment::State::at_collective && (fragment.members & ended) != 0) {
      fragment.waited = 0;
      limit_ = 0;
    }
  block_.cluster().release_if_complete();
}

void Warp::poll_again(Mask active) {
  --position_;
  --block_.counters().instructions[position_].executions;
  block_.counters().instructions[position_].lanes -= static_cast<unsigned>(std::popcount(active));
  leave({.position = position_, .lanes = lanes_, .state = Fragment::State::polling, .waits_at = position_});
}

void Warp::resume() {
  for (Fragment& fragment : others_) {
    if (fragment.state == Fragment::State::at_barrier) ++fragment.position;
    fragment.state = Fragment::State::ready;
  }
  limit_ = 0;
}

void Warp::wait_for_lanes(Mask waiting, Mask active, Mask members) {
  Counters::Instruction& counted = block_.counters().instructions[position_ - 1];
  if (waiting == active) --counted.executions;
  counted.lanes -= static_cast<unsigned>(std::popcount(waiting));
  leave({.position = position_ - 1,
         .lanes = waiting,
         .state = Fragment::State::at_collective,
         .waited = waiting,
         .members = members});
}

void Warp::end_waiting(Mask lanes) {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    Fragment& fragment = others_[i];
    const Mask part = fragment.lanes & lanes;
    if (part == 0 || fragment.state != Fragment::State::at_collective) continue;
    Counters::Instruction& counted = block_.counters().instructions[fragment.position];
    ++counted.executions;
    counted.lanes += static_cast<unsigned>(std::popcount(part));
    fragment.lanes &= ~part;
    const std::size_t next = fragment.position + 1;
    others_.push_back({.position = next, .lanes = part});
  }
  std::erase_if(others_, [](const Fragment& fragment) { return fragment.lanes == 0; });
  limit_ = 0;
}

/// The fragment that runs becomes one of the others.
void Warp::leave_running() {
  const Operation* const poll = polls_.latest();
  const std::size_t waits_at = poll != nullptr ? program_.position_of(*poll) : position_ - 1;  // it sleeps
  if (lanes_ != 0)
    others_.push_back({.position = position_,
                       .lanes = lanes_,
                       .has_given_way = gives_way_,
                       .turns = turns_,
                       .waits_at = gives_way_ ? waits_at : Fragment::kNone});
  lanes_ = 0;
}

/// Merges fragments, and chooses the one that runs; false if none can, or if the one that ran gives way.
bool Warp::regroup() {
  leave_running();
  std::ranges::sort(others_, {}, [](const Fragment& fragment) { return std::pair(fragment.state, fragment.position); });
  std::size_t kept = 0;
  for (const Fragment& fragment : others_) {
    if (kept > 0 && others_[kept - 1].state == fragment.state && others_[kept - 1].position == fragment.position) {
      Fragment& merged = others_[kept - 1];
      merged.lanes |= fragment.lanes;
      merged.members |= fragment.members;
      merged.has_given_way &= fragment.has_given_way;
      merged.turns = std::max(merged.turns, fragment.turns);
      merged.waits_at = std::min(merged.waits_at, fragment.waits_at);
    } else {
      others_[kept++] = fragment;
    }
  }
  others_.resize(kept);
  if (gives_way_) {
    is_fair_ = true;
    limit_ = 0;
    return false;
  }
  return choose();
}

bool Warp::choose() {
  if (is_fair_ && choose_fairly()) return true;
  auto chosen = others_.begin();
  if (chosen != others_.end() && chosen->state != Fragment::State::ready)
    chosen = std::ranges::find_if(others_, is_called_again);
  limit_ = 0;
  if (chosen == others_.end()) return false;
  start(chosen);
  return true;
}

std::vector<Fragment>::iterator Warp::next_that_has_not_given_way() {
  auto found = others_.end();
  for (auto fragment = others_.begin(); fragment != others_.end(); ++fragment) {
    if (fragment->has_given_way) continue;
    if (fragment->state != Fragment::State::ready && !is_called_again(*fragment)) continue;
    if (found == others_.end() || fragment->turns < found->turns) found = fragment;
  }
  return found;
}

/// Chooses among the fragments that have not given way; if there are none, all are equal again.
bool Warp::choose_fairly() {
  const auto chosen = next_that_has_not_given_way();
  if (chosen == others_.end()) {
    forget_who_gave_way();
    return false;
  }
  start(chosen);
  return true;
}

void Warp::start(std::vector<Fragment>::iterator chosen) {
  position_ = chosen->position;
  lanes_ = chosen->lanes;
  turns_ = chosen->turns;
  others_.erase(chosen);
  const auto next = std::ranges::find_if(others_, [&](const Fragment& fragment) {
    return fragment.state == Fragment::State::ready && fragment.position > position_;
  });
  limit_ = next != others_.end() ? next->position : kNoLimit;
}

void Warp::forget_who_gave_way() {
  for (Fragment& fragment : others_) fragment.has_given_way = false;
  is_fair_ = false;
  ++turns_;
  limit_ = 0;
}

/// Threads of a warp make progress whatever the others do: after very many instructions, the fragment that runs lets
/// the others run, too.
void Warp::share_with_fragments() {
  unshared_ += executed_;
  unprobed_ += executed_;
  if (unshared_ < kLongestUnshared || others_.empty()) return;
  unshared_ = 0;
  leave_for_others();
}

/// The fragment that runs gives way. Returns whether others can run, besides those that look at mbarriers again.
bool Warp::leave_for_others() {
  gives_way_ = true;
  leave_running();
  is_fair_ = true;
  limit_ = 0;
  return why_stopped() == Stop::gave_way;
}

Warp::Stop Warp::run_in_loop() {
  constexpr std::uint64_t kLongestLoop = 4096;
  constexpr unsigned kMostComparisons = 16;
  unprobed_ = 0;
  is_in_loop_ = false;
  const bool was_fair = is_fair_;
  if (position_ >= limit_ && !regroup()) {
    executed_ = 0;
    return why_stopped();
  }
  const std::size_t position = position_, fragments = others_.size();
  const Mask lanes = lanes_, living = living_;
  const std::vector<std::byte> frame(frame_, frame_ + program_.frame_bytes);
  const std::vector<std::byte> local = local_;
  const std::uint64_t progress = block_.progress();
  const bool compared = block_.compares_stores();
  block_.compare_stores(true);
  Stop stop = Stop::quantum_over;
  std::uint64_t executed = 0;
  for (unsigned comparisons = 0; executed < kLongestLoop && comparisons < kMostComparisons;) {
    stop = execute(1);
    executed += executed_;
    if (stop != Stop::quantum_over) break;
    if (position_ != position || lanes_ != lanes) continue;
    ++comparisons;
    is_in_loop_ = living_ == living && others_.size() == fragments && block_.progress() == progress &&
                  !calls_.is_used() && local == local_ && std::memcmp(frame.data(), frame_, frame.size()) == 0;
    if (!is_in_loop_) continue;
    executed = kLongestLoop;  // as many as it would execute in vain
    stop = leave_for_others() ? Stop::gave_way : Stop::waiting;
  }
  block_.compare_stores(compared);
  executed_ = executed;
  unshared_ += executed;
  if (was_fair && stop == Stop::quantum_over) end_fair_turn();
  return stop;
}

/// Whether all threads wait at one barrier, by instructions that are not .aligned.
bool Warp::is_at_one_barrier() const {
  const auto number = [&](const Fragment& fragment) {
    const Operation& operation = program_.operations[fragment.position];
    return reinterpret_cast<const std::uint32_t*>(frame_ + operation.a)[lowest_lane(fragment.lanes)];
  };
  return std::ranges::all_of(others_, [&](const Fragment& fragment) {
    const Operation& operation = program_.operations[fragment.position];
    const auto& details = *static_cast<const BarrierDetails*>(operation.details);
    return !details.is_aligned && details.reduction == BarrierDetails::Reduction::none &&
           number(fragment) == number(others_.front());
  });
}

Warp::Stop Warp::why_stopped() {
  if (std::exchange(gives_way_, false)) {
    const bool others_can_run = next_that_has_not_given_way() != others_.end();
    for (Fragment& fragment : others_)
      if (fragment.state == Fragment::State::polling) {
        fragment.waits_at = fragment.waiting_position();
        fragment.state = Fragment::State::ready;
      }
    return others_can_run ? Stop::gave_way : Stop::waiting;
  }
  if (others_.empty()) return Stop::ended;
  if (others_.back().state == Fragment::State::polling) return Stop::polling;
  const Fragment& first = others_.front();
  if (first.state == Fragment::State::at_collective)
    fail_at(first.position, lowest_lane(first.lanes),
            "threads of a warp wait for others of it that never come: of the members " + hexadecimal(first.members, 8) +
                ", lanes " + hexadecimal(first.lanes, 8) + " are here, and " +
                hexadecimal(first.members & living_ & ~first.lanes, 8) + " wait elsewhere",
            FindingKind::deadlock);
  if (others_.size() > 1 && !is_at_one_barrier())
    fail_at(others_[1].position, lowest_lane(others_[1].lanes),
            "divergent barrier: threads of one warp wait at different barriers; another one is at " +
                describe_instruction(program_, first.position));
  return Stop::at_barrier;
}

void Warp::fail(const Operation& operation, unsigned lane, const std::string& what, FindingKind kind) const {
  fail_at(program_.position_of(operation), lane, what, kind);
}

void Warp::fail_at(std::size_t position, unsigned lane, const std::string& what, FindingKind kind) const {
  throw LocatedFault(finding_at(*this, kind, position, lane, what));
}

}  // namespace gradring::simulated_gpu
