// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"

namespace gradring::comm {

struct SharedMemoryGroupOptions {
  int rank = 0;
  int world_size = 1;
  ProcessGroup::Duration timeout = std::chrono::seconds(30);
  std::string name = "group";  ///< prefix of this group's keys in the store
};

/// The process group of ranks that are processes on this host. They rendezvous through `store`, which is used only
/// during this call. Blocks until all ranks have joined. Leaves no file and no name behind, however the processes end.
///
/// Errors    InvalidArgument if the rank is outside the world; Timeout that names the missing ranks; PeerLost;
///           DeviceError if memory cannot be allocated.
std::unique_ptr<ProcessGroup> make_shared_memory_group(Store& store, const SharedMemoryGroupOptions& options);

}  // namespace gradring::comm
