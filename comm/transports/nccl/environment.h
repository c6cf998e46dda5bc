// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "comm/transports/nccl/rank_info.h"

namespace gradring::comm::nccl {

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
