// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"

namespace gradring::comm::nccl {

/// Where all ranks put something for all others.
struct Gathering {
  std::vector<std::string> values;  ///< by rank; empty for who is missing
  std::vector<int> missing;         ///< who did not come before the deadline
};

/// Puts `mine` under `key`/rank, and waits for what the others put there. Meanwhile `look` is called again and again
/// with a rank that has not come yet; it may throw.
Gathering gather(Store& store, const std::string& key, int rank, int world_size, const std::string& mine,
                 Deadline deadline, const std::function<void(int missing)>& look);

}  // namespace gradring::comm::nccl
