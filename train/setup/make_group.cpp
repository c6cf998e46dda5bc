// SPDX-License-Identifier: Apache-2.0
#include "train/setup/make_group.h"

#include <fmt/format.h>

#include "comm/rendezvous/file_store.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/shared_memory_group.h"
#include "train/report/environment_error.h"
#include "train/setup/meeting_place.h"

namespace gradring::train {

std::unique_ptr<comm::ProcessGroup> make_group(const WorkerEnvironment& place, std::chrono::milliseconds timeout) {
  if (place.world_size != place.local_world_size)
    throw EnvironmentError(
        fmt::format("{} ranks on several machines ({} here): this version trains on one machine only", place.world_size,
                    place.local_world_size));
  const comm::SharedMemoryGroupOptions options{.rank = place.rank,
                                               .world_size = place.world_size,
                                               .timeout = timeout,
                                               .name = fmt::format("train-{}", place.restart_count)};
  if (place.world_size == 1) {
    comm::MemoryStore store;
    return comm::make_shared_memory_group(store, options);
  }
  if (!place.store_path.empty()) {
    comm::FileStore store(place.store_path);
    return comm::make_shared_memory_group(store, options);
  }
  const MeetingPlace meeting(place, Deadline::after(timeout));
  comm::FileStore store(meeting.store());
  auto group = comm::make_shared_memory_group(store, options);
  group->barrier_on_host();  // before rank 0 takes the place away
  return group;
}

}  // namespace gradring::train
