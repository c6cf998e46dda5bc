// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/rank_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "comm/transport/error.h"

namespace gradring::comm::nccl {
namespace {

std::string without_spaces(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '-');
  return text.empty() ? "-" : text;
}

void check_same_world(const NcclOptions& options, const RankInfo& mine, int rank, const RankInfo& theirs) {
  if (theirs.world_size == mine.world_size && theirs.nccl_version == mine.nccl_version) return;
  throw Desync({options.rank, rank, "join", 0},
               fmt::format("ranks do not match: rank {} has world size {} and NCCL {}, rank {} ({}) has world size {} "
                           "and NCCL {}; start all ranks with the same world size and the same NCCL",
                           options.rank, mine.world_size, mine.nccl_version, rank, theirs.process, theirs.world_size,
                           theirs.nccl_version));
}

void check_own_gpus(const std::vector<RankInfo>& all) {
  for (std::size_t one = 0; one < all.size(); ++one)
    for (std::size_t other = one + 1; other < all.size(); ++other) {
      const RankInfo &a = all[one], &b = all[other];
      const bool same = a.host == b.host && a.gpu == b.gpu;
      check<DeviceError>(!same || (a.shares_gpu && b.shares_gpu), [&] {
        return fmt::format(
            "rank {} ({}) and rank {} ({}) use the same GPU {}: give each rank its own GPU, "
            "start fewer ranks, or, for a test, pass --allow-shared-gpu",
            one, a.process, other, b.process, a.gpu);
      });
    }
}

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

std::string RankInfo::to_text() const {
  return fmt::format("{} {} {} {:d} {} {} {} {}", world_size, nccl_version, pid, shares_gpu, without_spaces(host),
                     without_spaces(namespaces), without_spaces(gpu), process);
}

RankInfo RankInfo::parse(const std::string& text) {
  std::istringstream fields(text);
  RankInfo read;
  fields >> read.world_size >> read.nccl_version >> read.pid >> read.shares_gpu >> read.host >> read.namespaces >>
      read.gpu >> std::ws;
  std::getline(fields, read.process);
  check<DeviceError>(!fields.fail(),
                     [&] { return "invalid rank info in the store: found '" + text + "', expected 8 fields"; });
  return read;
}

std::vector<RankInfo> exchange_rank_info(const NcclOptions& options, const RankInfo& mine, const std::string& prefix,
                                         Deadline deadline) {
  std::vector<RankInfo> all;
  exchange(options.store, prefix + "/rank", options.rank, options.world_size, mine.to_text(), deadline,
           [&](int rank, const std::string& text) {
             all.push_back(RankInfo::parse(text));
             check_same_world(options, mine, rank, all.back());
           });
  check_own_gpus(all);
  return all;
}

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
