// SPDX-License-Identifier: Apache-2.0
#include "train/setup/make_group.h"

#include <fmt/format.h>

#include "comm/rendezvous/file_store.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/shared_memory_group.h"
#include "comm/tcp_group.h"
#include "train/report/environment_error.h"
#include "train/setup/meeting_place.h"

namespace gradring::train {

namespace {

/// The group of the ranks that share this store.
std::unique_ptr<comm::ProcessGroup> join(comm::Store& store, const WorkerEnvironment& place,
                                         std::chrono::milliseconds timeout, const std::string& comm) {
  const std::string name = fmt::format("train-{}", place.restart_count);
  if (comm == "tcp") {
    comm::TcpGroupOptions options;
    options.rank = place.rank;
    options.world_size = place.world_size;
    options.timeout = timeout;
    options.name = name;
    return comm::make_tcp_group(store, options);
  }
  const comm::SharedMemoryGroupOptions options{
      .rank = place.rank, .world_size = place.world_size, .timeout = timeout, .name = name};
  return comm::make_shared_memory_group(store, options);
}

}  // namespace

std::unique_ptr<comm::ProcessGroup> make_group(const WorkerEnvironment& place, std::chrono::milliseconds timeout,
                                               const std::string& comm) {
  if (place.world_size != place.local_world_size)
    throw EnvironmentError(
        fmt::format("{} ranks on several machines ({} here): this version trains on one machine only", place.world_size,
                    place.local_world_size));
  if (place.world_size == 1) {
    comm::MemoryStore store;
    return join(store, place, timeout, comm);
  }
  if (!place.store_path.empty()) {
    comm::FileStore store(place.store_path);
    return join(store, place, timeout, comm);
  }
  const MeetingPlace meeting(place, Deadline::after(timeout));
  comm::FileStore store(meeting.store());
  auto group = join(store, place, timeout, comm);
  group->barrier_on_host();  // before rank 0 takes the place away
  return group;
}

}  // namespace gradring::train
