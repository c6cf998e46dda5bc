// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/launch.h"

namespace gradring::simulated_gpu {

/// The blocks of a cluster, which are resident together and executed by one host thread, in turns; without clusters, a
/// block alone.
///
/// Source    PTX ISA 9.0: 2.2.2 Cluster of cooperative thread arrays, 9.7.13.4 barrier.cluster.
class Cluster {
 public:
  Cluster(const Program& program, const LaunchSpec& launch, GlobalMemory& memory, const ExecutionOptions& options,
          Tally& tally, RaceSearch& races);

  /// Calls Block::begin_launch of all blocks.
  void begin_launch();
  /// The cluster with this index of the grid, from its begin. The one before has ended.
  void begin(std::uint64_t index);
  /// As Block::run, of all blocks; polls is not returned.
  ///
  /// Errors    Fault.
  Block::Outcome run(std::uint64_t turn);

  unsigned size() const { return static_cast<unsigned>(blocks_.size()); }
  Block& block(unsigned rank) { return *blocks_[rank]; }
  const Block& block(unsigned rank) const { return *blocks_[rank]; }
  /// %clusterid
  const Extent& index() const { return index_; }

  std::uint64_t executed() const;
  std::uint64_t executed_since_wait = 0;  ///< by Grid: instructions since a turn after which it waited
  bool has_progressed();
  void compare_stores(bool compares);
  /// GlobalWords::forget(), of all blocks.
  void forget_words();

  /// barrier.cluster.arrive, of some lanes of a warp.
  ///
  /// Errors    Fault without a location if one has not waited since it arrived last.
  void arrive(const Warp& warp, Mask lanes);
  /// barrier.cluster.wait: whether the barrier for which these lanes have arrived is complete.
  ///
  /// Errors    Fault without a location if one has not arrived.
  bool is_complete(const Warp& warp, Mask lanes);
  /// Threads that have ended count as arrived.
  void release_if_complete();

 private:
  struct Arrivals {
    Mask lanes = 0;                                ///< that have arrived, and have not waited since
    std::array<std::uint64_t, kWarpSize> phase{};  ///< in which they have
  };
  Arrivals& arrivals_of(const Warp& warp) { return arrivals_[warp.block().cluster_rank() * warps_ + warp.index()]; }
  std::uint64_t progress() const;

  const LaunchSpec& launch_;
  const ExecutionOptions& options_;
  std::vector<std::unique_ptr<Block>> blocks_;  ///< by rank
  Extent index_;
  unsigned warps_;  ///< of a block
  std::vector<Arrivals> arrivals_;
  std::uint64_t phase_ = 0;    ///< of barrier.cluster
  bool has_arrivals_ = false;  ///< in this phase
  std::uint64_t idle_passes_ = 0;
  std::uint64_t passes_ = 0;
};

/// %nclusterid
inline Extent clusters_of(const LaunchSpec& launch) {
  return {launch.grid.x / launch.cluster.x, launch.grid.y / launch.cluster.y, launch.grid.z / launch.cluster.z};
}

}  // namespace gradring::simulated_gpu
