// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/nccl.h"

#include <fmt/format.h>

#include <cstring>

#include "comm/transport/error.h"
#include "comm/transports/nccl/nccl_transport.h"
#include "kernels/base/error.h"

namespace gradring::comm {
namespace nccl {
namespace {

std::string failure_of(const std::string& error, std::string_view call) {
  return fmt::format("{} failed: {}; run again with NCCL_DEBUG=INFO for details", call, error);
}

void check_nccl(const Api& api, ncclResult_t result, std::string_view call) {
  check<DeviceError>(result == ncclSuccess || result == ncclInProgress,
                     [&] { return failure_of(describe_error(api, result, nullptr), call); });
}

RankInfo rank_info_of(const NcclOptions& options, const Dependencies& dependencies) {
  int version = 0;
  check_nccl(dependencies.api, dependencies.api.get_version(&version), "ncclGetVersion");
  return {.world_size = options.world_size,
          .nccl_version = version,
          .pid = dependencies.pid,
          .shares_gpu = options.allow_shared_gpu,
          .host = dependencies.host,
          .namespaces = dependencies.namespaces,
          .gpu = options.gpu,
          .process = dependencies.process};
}

/// Created by rank 0. It says where NCCL's bootstrap listens, and with it anyone could join: so it goes to
/// authenticated ranks only, and not through the store.
ncclUniqueId share_unique_id(const NcclOptions& options, const Api& api) {
  ncclUniqueId id{};
  if (options.rank == 0) check_nccl(api, api.get_unique_id(&id), "ncclGetUniqueId");
  const std::string bytes = options.broadcast(std::string(id.internal, sizeof id.internal));
  check<DeviceError>(bytes.size() == sizeof id.internal, [&] {
    return fmt::format("invalid ncclUniqueId from rank 0: found {} bytes, expected {}", bytes.size(),
                       sizeof id.internal);
  });
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

std::unique_ptr<Communicator> connect(const NcclOptions& options, const Dependencies& dependencies,
                                      const ncclUniqueId& id, Deadline deadline) {
  auto communicator = std::make_unique<Communicator>(dependencies, options.make_current);
  const ncclResult_t result = communicator->connect(id, options.rank, options.world_size, options.name, deadline);
  if (result == ncclSuccess) return communicator;
  const std::string why =
      result == ncclInProgress
          ? fmt::format(
                "rank {}: NCCL did not connect the {} ranks in time, although all have joined; check the "
                "output of NCCL_DEBUG=INFO, or raise the timeout",
                options.rank, options.world_size)
          : failure_of(communicator->describe(result), "ncclCommInitRankConfig");
  communicator->abort(why + "; nor did NCCL abort");
  if (result == ncclInProgress) throw Timeout({options.rank, -1, "join", 0}, why);
  throw DeviceError(why);
}

}  // namespace

std::unique_ptr<Transport> make_transport(const NcclOptions& options, const Dependencies& dependencies) {
  check_rank(options.rank, options.world_size);
  const Deadline deadline = Deadline::after(options.timeout);
  const std::string prefix = "nccl/" + options.name;
  const RankInfo mine = rank_info_of(options, dependencies);
  const std::vector<RankInfo> ranks = exchange_rank_info(options, mine, prefix, deadline);
  set_environment(ranks, options.rank, dependencies);
  const ncclUniqueId id = share_unique_id(options, dependencies.api);
  options.make_current();
  auto communicator = connect(options, dependencies, id, deadline);
  return std::make_unique<NcclTransport>(options, dependencies, std::move(communicator), ranks, prefix);
}

}  // namespace nccl

std::unique_ptr<Transport> make_nccl_transport(const NcclOptions& options) {
  return nccl::make_transport(
      options, nccl::system_dependencies(options.simulated_gpus ? nccl::load_simulated() : nccl::load_library()));
}

}  // namespace gradring::comm
