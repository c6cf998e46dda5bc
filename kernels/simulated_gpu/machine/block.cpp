// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/block.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/runtime/philox.h"
#include "kernels/simulated_gpu/machine/cluster.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

/// Instructions until another warp has its turn: long turns without a seed, because they are faster.
constexpr unsigned kLongTurn = 1u << 20;
constexpr unsigned kShortTurn = 512;
/// Looks at mbarriers, without anything happening in between, after which a block is taken to wait for ever.
constexpr unsigned kMostIdleWakes = 1000;

}  // namespace

Block::Block(const Program& program, const LaunchSpec& launch, GlobalMemory& memory, const ExecutionOptions& options,
             Tally& tally, RaceSearch& races, Cluster& cluster, unsigned rank)
    : program_(program),
      launch_(launch),
      options_(options),
      tally_(tally),
      counters_(tally.counters),
      cluster_(cluster),
      rank_(rank),
      global_(memory, launch.device),
      mbarriers_(shared_.clocks(), [this] { note_progress(); }) {
  if (options.checks_races) accesses_.emplace(program, launch, memory, races);
  const std::uint64_t warps = (launch.block.count() + kWarpSize - 1) / kWarpSize;
  for (unsigned warp = 0; warp < warps; ++warp) warps_.push_back(std::make_unique<Warp>(*this, warp));
  if (options.checks_races && options.findings != nullptr && warps > 1) global_words_.emplace(races.words);
  begin_launch();
}

void Block::begin_launch() {
  global_.forget();
  for (const auto& warp : warps_) warp->begin_launch();
  if (accesses_) accesses_->begin_launch();
}

void Tally::attribute(std::uint64_t block) {
  if (counters.by_multiprocessor.empty()) return;
  std::vector<std::uint64_t>& sums = counters.by_multiprocessor[block % counters.by_multiprocessor.size()];
  sums.resize(attributed.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint64_t now = counters.instructions[i].executions;
    sums[i] += now - std::exchange(attributed[i], now);
  }
}

unsigned Block::cluster_size() const { return cluster_.size(); }

Block* Block::of_rank(unsigned rank) { return rank < cluster_.size() ? &cluster_.block(rank) : nullptr; }

void Block::begin(const Extent& index) {
  index_ = index;
  linear_index_ = index.x + std::uint64_t{launch_.grid.x} * (index.y + std::uint64_t{launch_.grid.y} * index.z);
  std::size_t shared_bytes = program_.kernel->static_shared_bytes + launch_.dynamic_shared_bytes;
  if (program_.uses_reserved_shared) shared_bytes = (shared_bytes + 127) / 128 * 128 + Program::kReservedSharedBytes;
  shared_.begin_block(shared_bytes, program_.smallest_access, warp_count(), options_.checks_races);
  if (std::exchange(uses_barriers_, false)) barriers_.fill({});
  clock_.clear();
  mbarriers_.clear();
  tensor_copies_.clear();
  warpgroups_.begin_block(warp_count());
  draws_ = executed_ = 0;
  changes_ = known_progress_ = 0;
  waiting_ = 0;
  last_chosen_ = warp_count() - 1;
  progress_ = progress_at_wake_ = 0;
  idle_wakes_ = 0;
  in_state_.fill(0);
  for (unsigned warp = 0; warp < warp_count(); ++warp) set_state(warp, State::ready);
  for (const auto& warp : warps_) warp->begin_block();
  if (accesses_) accesses_->begin_block(linear_index_);
  if (global_words_) global_words_->begin_block(shared_.clocks());
  ++counters_.blocks;
  counters_.warps += warp_count();
}

Block::Outcome Block::run(std::uint64_t turn) {
  const Outcome outcome = run_warps(turn);
  tally_.attribute(linear_index_);
  return outcome;
}

Block::Outcome Block::run_warps(std::uint64_t turn) {
  const std::uint64_t end = executed_ + turn;
  const bool is_alone = cluster_.size() == 1;
  bool has_looked = false;  // at mbarriers, which other warps or blocks that wait may still complete
  for (;;) {
    Mask ready = in_state(State::ready) & ~waiting_;
    if (progress_ != progress_at_wake_ || (ready == 0 && !has_looked)) {
      has_looked = ready == 0 && (waiting_ != 0 || !is_alone);
      wake_polling();
      ready = in_state(State::ready) & ~waiting_;
    }
    if (ready != 0) {
      advance(choose(ready));
    } else if (waiting_ != 0) {
      waiting_ = 0;
      return Outcome::waits;
    } else if (in_state(State::polling) != 0) {
      return Outcome::polls;
    } else if (in_state(State::at_barrier) != 0) {
      report_deadlock();
    } else {
      break;
    }
    if (executed_ >= end) return Outcome::turn_over;
  }
  for (const auto& warp : warps_) warp->bulk_stores().end_block(*warp);
  tensor_copies_.end_block();
  warpgroups_.end_block();
  if (accesses_) accesses_->end_block();
  return Outcome::ended;
}

void Block::advance(unsigned index) {
  Warp& warp = *warps_[index];
  const std::uint64_t turn =
      std::min<std::uint64_t>(options_.seed == 0 ? kLongTurn : 1 + draw(kShortTurn), options_.most_instructions);
  const Warp::Stop stop = warp.may_be_in_loop() ? warp.run_in_loop() : warp.run(turn);
  executed_ += warp.executed();
  if (stop == Warp::Stop::waiting)
    waiting_ |= Mask{1} << index;
  else if (stop != Warp::Stop::gave_way && stop != Warp::Stop::polling)
    waiting_ = 0;
  if (executed_ >= options_.most_instructions && stop != Warp::Stop::ended)
    warp.fail_here(joined("the block does not end: its warps executed ", executed_, " instructions"),
                   FindingKind::deadlock);
  switch (stop) {
    case Warp::Stop::at_barrier: arrive(index); break;
    case Warp::Stop::polling: set_state(index, State::polling); break;
    case Warp::Stop::quantum_over:
    case Warp::Stop::gave_way:
    case Warp::Stop::waiting: break;
    case Warp::Stop::ended:
      set_state(index, State::ended);
      note_progress();
      for (Barrier& barrier : barriers_)
        if (barrier.warps != 0 && barrier.expected == 0) release_if_complete(barrier);
      cluster_.release_if_complete();
      break;
  }
}

/// The barrier that an instruction names, after all checks.
Block::Barrier& Block::barrier_of(const Operation& operation, Warp& warp, unsigned lane) {
  const std::uint32_t number = warp.row<std::uint32_t>(operation.a)[lane];
  if (number >= barriers_.size()) warp.fail(operation, lane, joined("barrier ", number, " is used; expected 0 to 15"));
  const unsigned expected = warp.row<std::uint32_t>(operation.b)[lane];
  if (expected % kWarpSize != 0)
    warp.fail(operation, lane, joined("a barrier is for ", expected, " threads; expected a multiple of the warp's 32"));
  uses_barriers_ = true;
  Barrier& barrier = barriers_[number];
  if (barrier.threads != 0 && barrier.expected != expected)
    warp.fail(operation, lane,
              joined("a barrier is for ", expected, " threads; expected ", barrier.expected,
                     ", as for the threads that are there"));
  barrier.expected = expected;
  return barrier;
}

void Block::arrive(unsigned index) {
  Warp& warp = *warps_[index];
  const Fragment& fragment = warp.waiting().front();
  const Operation& operation = program_.operations[fragment.position];
  Barrier& barrier = barrier_of(operation, warp, lowest_lane(fragment.lanes));
  if (const Mask ended = fragment.members & ~warp.living(); ended != 0)
    note_finding(warp, FindingKind::divergent_barrier, fragment.position, lowest_lane(fragment.lanes), [&] {
      return joined("divergent barrier: ", std::popcount(ended),
                    " threads of the warp went on without it, and ended while the others wait");
    });
  set_state(index, State::at_barrier);
  barrier.warps |= Mask{1} << index;
  barrier.threads += barrier.expected == 0 ? static_cast<unsigned>(std::popcount(warp.living())) : kWarpSize;
  const auto& details = *static_cast<const BarrierDetails*>(operation.details);
  if (details.reduction != BarrierDetails::Reduction::none)
    barrier.votes +=
        static_cast<unsigned>(std::popcount((warp.predicate(operation.c) ^ details.flip) & fragment.lanes));
  release_if_complete(barrier);
}

void Block::arrive_without_waiting(const Operation& operation, Warp& warp, Mask lanes) {
  const unsigned lane = lowest_lane(lanes);
  Barrier& barrier = barrier_of(operation, warp, lane);
  if (barrier.expected == 0) warp.fail(operation, lane, "an arrival at a barrier without a number of threads");
  shared_.clocks().release(warp.thread_index(lane), true, barrier.released);
  barrier.threads += kWarpSize;
  release_if_complete(barrier);
}

/// Threads that have ended count as arrived at a barrier for all threads of the block (PTX ISA, exit: "If the exiting
/// threads are holding up the barrier, the barrier is released").
void Block::release_if_complete(Barrier& barrier) {
  if (barrier.expected != 0) {
    if (barrier.threads == barrier.expected) release(barrier);
    return;
  }
  const std::uint64_t here = living();
  if (here != launch_.block.count()) note_early_exit(barrier, here);
  if (barrier.threads == here) release(barrier);
}

void Block::release(Barrier& barrier) {
  Mask ended = 0;  // a warp whose turn was over with its last instruction is not in State::ended yet
  if (barrier.expected == 0)
    for (unsigned index = 0; index < warp_count(); ++index)
      if (warps_[index]->living() == 0) ended |= Mask{1} << index;
  shared_.clocks().join(barrier.warps | ended);
  if ((barrier.warps | ended) == (Mask{2} << (warp_count() - 1)) - 1) shared_.order().clear();
  for_each_lane(barrier.warps, [&](unsigned index) {
    Warp& warp = *warps_[index];
    shared_.clocks().acquire(index, warp.living(), true, barrier.released);
    const Fragment& fragment = warp.waiting().front();
    const Operation& operation = program_.operations[fragment.position];
    switch (static_cast<const BarrierDetails*>(operation.details)->reduction) {
      case BarrierDetails::Reduction::none: break;
      case BarrierDetails::Reduction::all:
        warp.set_predicate(operation.d, fragment.lanes, barrier.votes == barrier.threads ? kAllLanes : 0);
        break;
      case BarrierDetails::Reduction::any:
        warp.set_predicate(operation.d, fragment.lanes, barrier.votes != 0 ? kAllLanes : 0);
        break;
      case BarrierDetails::Reduction::count:
        for_each_lane(fragment.lanes,
                      [&](unsigned lane) { warp.row<std::uint32_t>(operation.d)[lane] = barrier.votes; });
        break;
    }
    warp.resume();
    set_state(index, State::ready);
  });
  barrier = {};
  note_progress();
}

std::uint64_t Block::living() const {
  std::uint64_t threads = 0;
  for (const auto& warp : warps_) threads += static_cast<unsigned>(std::popcount(warp->living()));
  return threads;
}

void Block::note_early_exit(const Barrier& barrier, std::uint64_t living) const {
  const Warp& waiting = *warps_[lowest_lane(barrier.warps)];
  const Fragment& fragment = waiting.waiting().front();
  note_finding(waiting, FindingKind::early_exit, fragment.position, lowest_lane(fragment.lanes), [&] {
    return joined("a barrier waits for all threads of the block, and ", launch_.block.count() - living,
                  " of them ended before");
  });
}

void Block::wake_polling() {
  const Mask polling = in_state(State::polling);
  if (polling == 0) return;
  const bool waits_for_own = waiting_ == 0 && cluster_.size() == 1;
  idle_wakes_ = progress_ == progress_at_wake_ && waits_for_own ? idle_wakes_ + 1 : 0;
  progress_at_wake_ = progress_;
  if (idle_wakes_ > kMostIdleWakes) report_deadlock();
  for_each_lane(polling, [&](unsigned warp) {
    warps_[warp]->resume();
    set_state(warp, State::ready);
  });
}

void Block::report_deadlock() const {
  const Warp& warp = *warps_[lowest_lane(in_state(State::at_barrier) | in_state(State::polling))];
  const Fragment& fragment = warp.waiting().front();
  const bool polls = fragment.state == Fragment::State::polling;
  warp.fail_at(fragment.waiting_position(), lowest_lane(fragment.lanes),
               joined("deadlock: ", std::popcount(in_state(State::at_barrier)), " warps wait at barriers, ",
                      std::popcount(in_state(State::polling)), " for mbarriers, ",
                      std::popcount(in_state(State::ended)), " have ended, and none can go on; ",
                      (polls ? "an mbarrier is waited for that never completes" : "a barrier is incomplete")),
               FindingKind::deadlock);
}

void Block::set_state(unsigned warp, State state) {
  for (Mask& warps : in_state_) warps &= ~(Mask{1} << warp);
  in_state_[static_cast<std::size_t>(state)] |= Mask{1} << warp;
}

unsigned Block::choose(Mask warps) {
  if (options_.seed == 0) {
    const Mask later = warps & ~((Mask{2} << last_chosen_) - 1);
    return last_chosen_ = lowest_lane(later != 0 ? later : warps);
  }
  for (unsigned skip = draw(static_cast<unsigned>(std::popcount(warps))); skip > 0; --skip) warps &= warps - 1;
  return last_chosen_ = lowest_lane(warps);
}

unsigned Block::draw(unsigned below) { return kernels::philox(options_.seed, draws_++, linear_index_)[0] % below; }

}  // namespace gradring::simulated_gpu
