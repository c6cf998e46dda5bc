// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/warp.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kFrameAlignment = 64;

void fill(std::byte* frame, Slot slot, unsigned width, unsigned lane, std::uint64_t bits) {
  std::byte* const row = frame + slot;
  switch (width) {
    case 2: reinterpret_cast<std::uint16_t*>(row)[lane] = static_cast<std::uint16_t>(bits); break;
    case 4: reinterpret_cast<std::uint32_t*>(row)[lane] = static_cast<std::uint32_t>(bits); break;
    default: reinterpret_cast<std::uint64_t*>(row)[lane] = bits; break;
  }
}

std::string hexadecimal(Mask mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

}  // namespace

Warp::Warp(Block& block, unsigned index)
    : block_(block),
      program_(block.program()),
      index_(index),
      memory_(std::make_unique<std::byte[]>(program_.frame_bytes + kFrameAlignment)),
      local_bytes_(program_.local_bytes),
      local_(kWarpSize * local_bytes_),
      calls_(program_) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
  frame_ = memory_.get() + (kFrameAlignment - address % kFrameAlignment) % kFrameAlignment;
}

void Warp::begin_launch() {
  for (const ConstantRow& row : program_.constants)
    if (row.width == 0) {
      predicate(row.slot) = static_cast<Mask>(row.bits);
    } else {
      for (unsigned lane = 0; lane < kWarpSize; ++lane) fill(frame_, row.slot, row.width, lane, row.bits);
    }
  for (const SpecialRow& row : program_.specials)
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      fill(frame_, row.slot, row.width, lane, row.value(*this, lane, row.argument));
}

void Warp::begin_block() {
  for (const SpecialRow& row : program_.specials)
    if (row.differs_by_block)
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        fill(frame_, row.slot, row.width, lane, row.value(*this, lane, row.argument));
  const std::uint64_t threads = std::min<std::uint64_t>(block_.launch().block.count() - index_ * kWarpSize, kWarpSize);
  living_ = threads == kWarpSize ? kAllLanes : (Mask{1} << threads) - 1;
  position_ = program_.kernel->entry;
  lanes_ = living_;
  limit_ = kNoLimit;
  others_.clear();
  copies_.clear();
  calls_.clear();
}

Extent Warp::thread(unsigned lane) const { return extent_at(block_.launch().block, thread_index(lane)); }

Warp::Stop Warp::run(std::uint64_t quantum) {
  const Operation* const operations = program_.operations.data();
  Counters::Instruction* const counters = block_.counters().instructions.data();
  for (; quantum > 0; --quantum) {
    if (position_ >= limit_ && !regroup()) [[unlikely]]
      return why_stopped();
    const Operation& operation = operations[position_];
    const Mask active = lanes_ & (predicate(operation.guard) ^ operation.guard_flip);
    ++counters[position_].executions;
    counters[position_].lanes += static_cast<unsigned>(std::popcount(active));
    ++position_;
    if (active != 0) operation.execute(operation, *this, active);
  }
  return Stop::quantum_over;
}

void Warp::poll_again() {
  --position_;
  --block_.counters().instructions[position_].executions;
  block_.counters().instructions[position_].lanes -= static_cast<unsigned>(std::popcount(lanes_));
  poll();
}

void Warp::resume() {
  for (Fragment& fragment : others_) {
    if (fragment.state == Fragment::State::at_barrier) ++fragment.position;
    fragment.state = Fragment::State::ready;
  }
  limit_ = 0;
}

void Warp::wait_for_lanes(Mask waiting, Mask active) {
  Counters::Instruction& counted = block_.counters().instructions[position_ - 1];
  if (waiting == active) --counted.executions;
  counted.lanes -= static_cast<unsigned>(std::popcount(waiting));
  leave({position_ - 1, waiting, Fragment::State::at_collective, waiting});
}

/// Merges fragments, and chooses the one that runs; false if none can.
bool Warp::regroup() {
  if (lanes_ != 0) others_.push_back({position_, lanes_, Fragment::State::ready});
  lanes_ = 0;
  std::ranges::sort(others_, {}, [](const Fragment& fragment) { return std::pair(fragment.state, fragment.position); });
  std::size_t kept = 0;
  for (const Fragment& fragment : others_) {
    if (kept > 0 && others_[kept - 1].state == fragment.state && others_[kept - 1].position == fragment.position)
      others_[kept - 1].lanes |= fragment.lanes;
    else
      others_[kept++] = fragment;
  }
  others_.resize(kept);
  return choose();
}

bool Warp::choose() {
  auto chosen = others_.begin();
  if (chosen != others_.end() && chosen->state != Fragment::State::ready)
    chosen = std::ranges::find_if(others_, [](const Fragment& fragment) {
      return fragment.state == Fragment::State::at_collective && fragment.lanes != fragment.waited;
    });
  limit_ = 0;
  if (chosen == others_.end()) return false;
  position_ = chosen->position;
  lanes_ = chosen->lanes;
  others_.erase(chosen);
  const bool has_next = !others_.empty() && others_.front().state == Fragment::State::ready;
  limit_ = has_next ? others_.front().position : kNoLimit;
  return true;
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

Warp::Stop Warp::why_stopped() const {
  if (others_.empty()) return Stop::ended;
  if (others_.back().state == Fragment::State::polling) return Stop::polling;
  const Fragment& first = others_.front();
  if (first.state == Fragment::State::at_collective)
    fail_at(first.position, lowest_lane(first.lanes),
            "threads of a warp wait for others of it that never come: lanes " + hexadecimal(first.lanes) + " of " +
                hexadecimal(living_) + " are here");
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
