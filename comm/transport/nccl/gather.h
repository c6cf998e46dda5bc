// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"

namespace gradring::comm::nccl {

struct GatherResult {
  std::vector<std::string> values;  ///< by rank; empty for missing ranks
  std::vector<int> missing;         ///< ranks without a value at the deadline
};

/// Sets the store's `key`/rank to `mine`, and waits for the values of all ranks. Calls `check` periodically with a rank
/// whose value is missing; it may throw.
GatherResult gather(Store& store, const std::string& key, int rank, int world_size, const std::string& mine,
                    Deadline deadline, const std::function<void(int missing)>& check);

}  // namespace gradring::comm::nccl
