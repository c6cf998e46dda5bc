// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/transport/nccl/surroundings.h"

namespace gradring::comm::nccl {

/// What a rank tells the others about itself before NCCL connects them.
struct Introduction {
  int world_size = 1;
  int nccl_version = 0;
  int pid = 0;
  bool shares_gpu = false;
  std::string host;
  std::string gpu;
  std::string process;

  std::string to_text() const;
  /// Errors    DeviceError if the text is not what to_text writes.
  static Introduction parse(const std::string& text);
};

/// The introductions of all ranks, by rank.
///
/// Errors    Timeout that names who did not come; Desync if one has another world size or NCCL; DeviceError if two have
///           one GPU and were not both told that they may.
std::vector<Introduction> introduce(const NcclOptions& options, const Introduction& mine, const std::string& prefix,
                                    Deadline deadline);

/// Tells NCCL by its environment that ranks of this host may share a GPU. From 2.30 on it can do that. Before, each rank
/// pretends to be a host of its own, whereupon NCCL takes sockets: right for correctness, meaningless for speed.
void allow_shared_gpu(const Introduction& mine, int rank, const Surroundings& surroundings);

}  // namespace gradring::comm::nccl
