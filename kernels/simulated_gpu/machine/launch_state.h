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

/// The state of one host thread that executes clusters of a launch.
struct Worker {
  unsigned index = 0;
  Tally tally;
  std::vector<std::unique_ptr<Cluster>> ended;      ///< have ended; the first may be of the launch before
  std::vector<std::unique_ptr<Cluster>> suspended;  ///< the one that waits longest first
  std::uint64_t draws = 0;
  std::uint64_t turns_of_waiting = 0;  ///< since one did something else
  Idleness idle;
};

/// The clusters and counters of a launch's host threads. The next launch of the kernel reuses them if its blocks have the
/// same extents, because making them costs more than a small launch. Registers and shared memory that a kernel does not
/// write hold what the launch before left there, as on a GPU.
struct LaunchState {
  static constexpr std::size_t kMaxKeptBytes = std::size_t{1} << 20;
  static constexpr std::size_t kStampsOfByte = 16;  ///< about what the race search keeps for a byte of shared memory

  LaunchSpec launch;
  GlobalMemory& memory;
  ExecutionOptions options;
  std::optional<RaceSearch> races{};
  std::deque<Worker> workers{};

  bool fits(const LaunchSpec& next, const GlobalMemory& next_memory, const ExecutionOptions& next_options) const {
    return &memory == &next_memory && launch.device == next.device && launch.block == next.block &&
           launch.cluster == next.cluster && options.checks_races == next_options.checks_races &&
           (options.findings == nullptr) == (next_options.findings == nullptr);
  }
  /// Keeps one cluster of each host thread, for the next launch.
  void trim() {
    for (Worker& worker : workers)
      if (worker.ended.size() > 1) worker.ended.resize(1);
  }
  /// Whether it takes little enough memory to stay.
  bool is_small(const Program& program) const {
    const std::uint64_t warps = (launch.block.count() + kWarpSize - 1) / kWarpSize;
    const std::size_t shared_bytes = program.kernel->static_shared_bytes + launch.dynamic_shared_bytes;
    const std::size_t block_bytes =
        warps * (program.frame_bytes + 2 * kWarpSize * program.local_bytes) + kStampsOfByte * shared_bytes;
    return launch.cluster.count() * workers.size() * block_bytes <= kMaxKeptBytes;
  }
};

}  // namespace gradring::simulated_gpu
