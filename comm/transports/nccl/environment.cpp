// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/environment.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradring::comm::nccl {
namespace {

/// NCCL_VERSION_CODE of the first version that lets ranks share a GPU.
constexpr int kSharesGpus = 23000;

void allow_shared_gpu(const RankInfo& mine, int rank, const Dependencies& dependencies) {
  if (mine.nccl_version >= kSharesGpus) {
    dependencies.set_default_environment("NCCL_MULTI_RANK_GPU_ENABLE", "1");
    return;
  }
  dependencies.set_default_environment("NCCL_HOSTID", fmt::format("{}-{}", mine.host, rank));
  dependencies.set_default_environment("NCCL_IB_DISABLE", "1");
}

}  // namespace

void set_environment(const std::vector<RankInfo>& ranks, int rank, const Dependencies& dependencies) {
  const RankInfo& mine = ranks[static_cast<std::size_t>(rank)];
  dependencies.set_default_environment("NCCL_GRAPH_REGISTER", "0");
  if (std::ranges::all_of(ranks, [&](const RankInfo& theirs) { return theirs.shares_namespaces(mine); })) {
    dependencies.set_default_environment("NCCL_SOCKET_IFNAME", "=lo");
    dependencies.set_default_environment("NCCL_RAS_ENABLE", "0");
  }
  if (mine.shares_gpu) allow_shared_gpu(mine, rank, dependencies);
}

}  // namespace gradring::comm::nccl
