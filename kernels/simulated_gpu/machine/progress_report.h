// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "kernels/simulated_gpu/machine/cluster.h"
#include "kernels/simulated_gpu/machine/findings.h"

namespace gradring::simulated_gpu {

/// Where the blocks of a launch wait that makes no progress.
class WaitReport {
 public:
  void add(const Cluster& cluster);

  /// `what`, and where: "..., by thread (0, 0, 0) of block (3, 0, 0)\n   in <kernel>, <line>\n   <instruction>\n
  /// waiting for memory to change: 131 threads of 131 blocks\n   waiting at a barrier: 255 threads of 8 blocks, ..."
  Finding finding(const std::string& what) const;

 private:
  /// In the order of what is named first.
  enum class For : std::uint8_t { memory, phase, lanes, barrier };  ///< phase: of an mbarrier, or of barrier.cluster
  struct Group {
    Finding first;  ///< of the first thread, without `what`
    std::string instruction;
    std::uint64_t threads = 0;
    std::uint64_t blocks = 0;
    std::uint64_t last_block = 0;
  };
  void add(const Block& block);
  static For waits_for(const Program& program, const Fragment& fragment);

  std::map<std::pair<For, std::size_t>, Group> groups_;  ///< by position
};

}  // namespace gradring::simulated_gpu
