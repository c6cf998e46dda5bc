// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/cluster.h"
#include "kernels/simulated_gpu/machine/global_accesses.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// How the launch goes on, as a host thread sees it.
struct Idleness {
  std::uint64_t progress = 0;  ///< Grid::progress_ when it was seen last
  std::uint64_t turns = 0;     ///< of blocks of this thread since then
  std::uint64_t instructions = 0;
};

/// What a host thread has of a launch.
struct Worker {
  unsigned index = 0;
  Tally tally;
  std::vector<std::unique_ptr<Cluster>> ended;      ///< also one of the launch before
  std::vector<std::unique_ptr<Cluster>> suspended;  ///< the one that waits longest first
  std::uint64_t draws = 0;
  std::uint64_t turns_of_waiting = 0;  ///< since one did something else
  Idleness idle;
};

/// What a launch works with. The next one of the kernel takes it over where its blocks are alike, since making it takes
/// longer than a small launch.
struct Workplace {
  static constexpr std::size_t kMostKeptBytes = std::size_t{1} << 20;

  LaunchSpec launch;
  GlobalMemory& memory;
  ExecutionOptions options;
  std::optional<RaceSearch> races{};
  std::deque<Worker> workers{};

  bool fits(const LaunchSpec& next, const GlobalMemory& its_memory, const ExecutionOptions& its_options) const {
    return &memory == &its_memory && launch.device == next.device && launch.block == next.block &&
           launch.cluster == next.cluster && options.checks_races == its_options.checks_races &&
           (options.findings == nullptr) == (its_options.findings == nullptr);
  }
  /// After a launch that ended well. Returns whether it takes so little memory that it may stay.
  bool is_kept(const Program& program) {
    for (Worker& worker : workers)
      if (worker.ended.size() > 1) worker.ended.resize(1);
    const std::size_t thread_bytes = program.frame_bytes / kWarpSize + 2 * program.local_bytes;
    return launch.block.count() * launch.cluster.count() * workers.size() * thread_bytes <= kMostKeptBytes;
  }
};

}  // namespace gradring::simulated_gpu
