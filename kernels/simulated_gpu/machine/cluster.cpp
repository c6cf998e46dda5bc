// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/cluster.h"

#include <algorithm>

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

/// Instructions of a block until another one of the cluster has its turn.
constexpr std::uint64_t kTurn = std::uint64_t{1} << 16;
/// Passes over the blocks of a cluster, all of which wait at barriers and mbarriers, until it is taken to wait for
/// ever.
constexpr std::uint64_t kMostIdlePasses = 1000;

}  // namespace

Cluster::Cluster(const Program& program, const LaunchSpec& launch, GlobalMemory& memory,
                 const ExecutionOptions& options, Tally& tally, RaceSearch& races)
    : launch_(launch), options_(options) {
  for (unsigned rank = 0; rank < launch.cluster.count(); ++rank)
    blocks_.push_back(std::make_unique<Block>(program, launch, memory, options, tally, races, *this, rank));
  warps_ = blocks_.front()->warp_count();
  arrivals_.resize(blocks_.size() * warps_);
}

void Cluster::begin_launch() {
  for (const auto& block : blocks_) block->begin_launch();
}

void Cluster::begin(std::uint64_t index) {
  index_ = extent_at(clusters_of(launch_), index);
  std::ranges::fill(arrivals_, Arrivals{});
  phase_ = idle_passes_ = passes_ = executed_since_wait = 0;
  has_arrivals_ = false;
  for (unsigned rank = 0; rank < size(); ++rank) {
    const Extent within = extent_at(launch_.cluster, rank);
    blocks_[rank]->begin({index_.x * launch_.cluster.x + within.x, index_.y * launch_.cluster.y + within.y,
                          index_.z * launch_.cluster.z + within.z});
  }
}

Block::Outcome Cluster::run(std::uint64_t turn) {
  using enum Block::Outcome;
  if (blocks_.size() == 1) return blocks_.front()->run(turn);
  const std::uint64_t end = executed() + turn;
  do {
    const std::uint64_t before = progress();
    bool all_ended = true, all_wait = true, all_poll = true;
    for (unsigned i = 0; i < size(); ++i) {
      Block& block = *blocks_[(i + (options_.seed == 0 ? 0 : passes_)) % size()];
      if (block.has_ended()) continue;
      const Block::Outcome outcome = block.run(kTurn);
      all_ended &= outcome == ended;
      all_poll &= outcome == polls;
      all_wait &= outcome == polls || outcome == waits;
    }
    ++passes_;
    if (all_ended) return ended;
    idle_passes_ = all_wait && progress() == before ? idle_passes_ + 1 : 0;
    if (idle_passes_ == 0) continue;
    if (!all_poll) return waits;
    if (idle_passes_ > kMostIdlePasses)
      (*std::ranges::find_if(blocks_, [](const auto& block) { return !block->has_ended(); }))->report_deadlock();
  } while (executed() < end);
  return turn_over;
}

std::uint64_t Cluster::executed() const {
  std::uint64_t sum = 0;
  for (const auto& block : blocks_) sum += block->executed();
  return sum;
}

std::uint64_t Cluster::progress() const {
  std::uint64_t sum = 0;
  for (const auto& block : blocks_) sum += block->progress();
  return sum;
}

bool Cluster::has_progressed() {
  bool any = false;
  for (const auto& block : blocks_) any |= block->has_progressed();
  return any;
}

void Cluster::compare_stores(bool compares) {
  for (const auto& block : blocks_) block->compare_stores(compares);
}

void Cluster::forget_words() {
  for (const auto& block : blocks_) block->forget_words();
}

void Cluster::arrive(const Warp& warp, Mask lanes) {
  Arrivals& own = arrivals_of(warp);
  if ((own.lanes & lanes) != 0)
    throw Fault("a thread arrives at the barrier of the cluster, and has not waited since it arrived last");
  own.lanes |= lanes;
  has_arrivals_ = true;
  for_each_lane(lanes, [&](unsigned lane) { own.phase[lane] = phase_; });
  release_if_complete();
}

bool Cluster::is_complete(const Warp& warp, Mask lanes) {
  Arrivals& own = arrivals_of(warp);
  if ((lanes & ~own.lanes) != 0) throw Fault("a thread waits at the barrier of the cluster, and has not arrived");
  bool complete = true;
  for_each_lane(lanes, [&](unsigned lane) { complete &= own.phase[lane] < phase_; });
  if (complete) own.lanes &= ~lanes;
  return complete;
}

void Cluster::release_if_complete() {
  if (!has_arrivals_) return;
  for (const auto& block : blocks_)
    for (unsigned index = 0; index < warps_; ++index) {
      const Warp& warp = block->warp(index);
      const Arrivals& arrivals = arrivals_of(warp);
      bool arrived = (warp.living() & ~arrivals.lanes) == 0;
      for_each_lane(warp.living(), [&](unsigned lane) { arrived &= arrivals.phase[lane] == phase_; });
      if (!arrived) return;
    }
  ++phase_;
  has_arrivals_ = false;
  std::vector<GlobalAccesses*> accesses;
  for (const auto& block : blocks_) {
    block->shared().clocks().join((Mask{2} << (warps_ - 1)) - 1);
    if (block->accesses() != nullptr) accesses.push_back(block->accesses());
    block->note_progress();
  }
  GlobalAccesses::join(accesses);
}

}  // namespace gradring::simulated_gpu
