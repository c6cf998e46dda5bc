// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "comm/transport/transport.h"

namespace gradring::comm {

/// What a schedule may depend on, equal on all ranks but for `rank`.
struct Extent {
  int rank = 0;
  int world = 1;
  std::size_t elements = 0;
  std::size_t chunk = 0;  ///< most elements that one move carries; 0 means no limit; what is lent is not carried
  int root = 0;           ///< of a broadcast
};

/// Who sends which slice to whom, and when, as two pure functions: they communicate nothing, allocate nothing that
/// outlives them, and yield any step of any rank on demand, so that an executor can run them and a test can check all
/// ranks at once.
///
/// All ranks have the same number of steps. In each step every send meets a receive on its peer. A world of one has
/// none.
struct Schedule {
  std::string_view operation;  ///< "all_reduce", ...
  bool sums = false;           ///< whether it contains receive_add, which not every element type has
  std::size_t (*step_count)(const Extent&);
  std::vector<Move> (*step)(const Extent&, std::size_t index);
};

}  // namespace gradring::comm
