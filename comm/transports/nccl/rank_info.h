// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"
#include "comm/transports/nccl/dependencies.h"

namespace gradring::comm::nccl {

struct GatherResult {
  std::vector<std::string> values;  ///< by rank; empty for missing ranks
  std::vector<int> missing;         ///< ranks without a value at the deadline
};

/// Sets the store's `key`/rank to `mine`, and waits for the values of all ranks. Calls `check` periodically with a rank
/// whose value is missing; it may throw.
GatherResult gather(Store& store, const std::string& key, int rank, int world_size, const std::string& mine,
                    Deadline deadline, const std::function<void(int missing)>& check);

/// A rank's host, process and GPU, published in the store before NCCL connects the ranks.
struct RankInfo {
  int world_size = 1;
  int nccl_version = 0;
  int pid = 0;
  bool shares_gpu = false;
  std::string host;
  std::string namespaces;
  std::string gpu;
  std::string process;

  /// Whether a process id of one rank, or a loopback address, means the same to the other.
  bool shares_namespaces(const RankInfo& other) const { return host == other.host && namespaces == other.namespaces; }

  std::string to_text() const;
  /// Errors    DeviceError if the text is not a result of to_text.
  static RankInfo parse(const std::string& text);
};

/// The introductions of all ranks, by rank.
///
/// Errors    Timeout that names the missing ranks; Desync if a rank has another world size or NCCL version; DeviceError
///           if two ranks have the same GPU and sharing is not allowed for both.
std::vector<RankInfo> exchange_rank_info(const NcclOptions& options, const RankInfo& mine, const std::string& prefix,
                                         Deadline deadline);

}  // namespace gradring::comm::nccl
