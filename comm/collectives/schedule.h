// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "comm/transport/transport.h"

namespace gradring::comm {

/// The inputs of a schedule, equal on all ranks except `rank`.
struct Extent {
  int rank = 0;
  int world = 1;
  std::size_t elements = 0;
  std::size_t chunk = 0;  ///< most elements of one message; 0 means no limit; exposed slices are not limited
  int root = kNoRoot;     ///< of a broadcast
};

/// Which rank sends which slice to which peer in each step, as two pure functions: an executor can run them, and a test
/// can check all ranks at once.
///
/// All ranks have the same number of steps; a world of one has none. In each step every send matches a receive on its
/// peer. Every rank receives at least one message from the rank before it: each message describes its sender's call, so
/// ranks that make different calls always find out.
struct Schedule {
  std::string_view operation;  ///< "all_reduce", ...
  Algorithm algorithm = Algorithm::ring;
  bool sums = false;  ///< whether it adds elements, which not every dtype supports
  std::size_t (*step_count)(const Extent&);
  std::vector<Move> (*step)(const Extent&, std::size_t index);
};

}  // namespace gradring::comm
