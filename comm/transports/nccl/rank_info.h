// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/rendezvous/store.h"
#include "comm/transports/nccl/dependencies.h"

namespace gradring::comm::nccl {

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

/// Sets the NCCL_* variables of a group of `ranks`, of which this process is `rank`, unless the user has set them. Call
/// it before NCCL reads them, so before ncclGetUniqueId:
///
///   * NCCL_GRAPH_REGISTER=0: a graph would register memory that NCCL can export, and only that, and so mix registered
///     with other memory in one transfer;
///   * on one host NCCL_SOCKET_IFNAME to "=lo", exactly that interface, and NCCL_RAS_ENABLE=0: NCCL's sockets are not
///     reachable from other hosts;
///   * what lets ranks share a GPU, if they may. NCCL supports that from 2.30 on. For older versions each rank reports
///     its own host id, so that NCCL uses sockets: correct, but meaningless for speed.
void set_environment(const std::vector<RankInfo>& ranks, int rank, const Dependencies& dependencies);

}  // namespace gradring::comm::nccl
