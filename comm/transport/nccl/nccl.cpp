// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/nccl.h"

#include <fmt/format.h>

#include <cstring>

#include "comm/error.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/runtime/error.h"

namespace gradring::comm {
namespace nccl {
namespace {

void check_nccl(const Api& api, ncclResult_t result, std::string_view call) {
  check<DeviceError>(result == ncclSuccess || result == ncclInProgress, [&] {
    return fmt::format("{} failed: {}; run again with NCCL_DEBUG=INFO for details", call, api.get_error_string(result));
  });
}

RankInfo rank_info_of(const NcclOptions& options, const Dependencies& dependencies) {
  int version = 0;
  check_nccl(dependencies.api, dependencies.api.get_version(&version), "ncclGetVersion");
  return {.world_size = options.world_size,
          .nccl_version = version,
          .pid = dependencies.pid,
          .shares_gpu = options.allow_shared_gpu,
          .host = dependencies.host,
          .gpu = options.gpu,
          .process = dependencies.process};
}

/// Rank 0 creates the ncclUniqueId, the others read it from the store.
ncclUniqueId share_unique_id(const NcclOptions& options, const Api& api, const std::string& key, Deadline deadline) {
  ncclUniqueId id{};
  if (options.rank == 0) {
    check_nccl(api, api.get_unique_id(&id), "ncclGetUniqueId");
    options.store.set(key, std::string(id.internal, sizeof id.internal));
    return id;
  }
  const std::string bytes = options.store.wait(key, deadline);
  check<DeviceError>(bytes.size() == sizeof id.internal, [&] {
    return fmt::format("invalid ncclUniqueId in the store: found {} bytes, expected {}", bytes.size(),
                       sizeof id.internal);
  });
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

std::shared_ptr<Communicator> connect(const NcclOptions& options, const Api& api, const ncclUniqueId& id,
                                      Deadline deadline) {
  auto communicator = std::make_shared<Communicator>(api);
  const ncclResult_t result = communicator->connect(id, options.rank, options.world_size, deadline);
  if (result == ncclInProgress)
    throw Timeout({options.rank, -1, "join", 0},
                  fmt::format("rank {}: NCCL did not connect the {} ranks in time, although all have joined; check the "
                              "output of NCCL_DEBUG=INFO, or raise the timeout",
                              options.rank, options.world_size));
  check_nccl(api, result, "ncclCommInitRankConfig");
  return communicator;
}

}  // namespace

std::unique_ptr<Transport> make_transport(const NcclOptions& options, const Dependencies& dependencies) {
  check(options.world_size >= 1 && options.rank >= 0 && options.rank < options.world_size, [&] {
    return fmt::format("invalid rank {}: expected a rank of a world of {}", options.rank, options.world_size);
  });
  const Deadline deadline = Deadline::after(options.timeout);
  const std::string prefix = "nccl/" + options.name;
  const RankInfo mine = rank_info_of(options, dependencies);
  const std::vector<RankInfo> ranks = exchange_rank_info(options, mine, prefix, deadline);
  if (options.allow_shared_gpu) allow_shared_gpu(mine, options.rank, dependencies);
  const ncclUniqueId id = share_unique_id(options, dependencies.api, prefix + "/id", deadline);
  options.make_current();
  auto communicator = connect(options, dependencies.api, id, deadline);
  return std::make_unique<NcclTransport>(options, dependencies, std::move(communicator), ranks, prefix);
}

}  // namespace nccl

std::unique_ptr<Transport> make_nccl_transport(const NcclOptions& options) {
  return nccl::make_transport(options, nccl::system_dependencies());
}

}  // namespace gradring::comm
