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
  std::string name = "group";  ///< keeps the keys of several groups in one store apart
};

/// The group of ranks that are processes on this host. They find each other through `store`, which is used only during
/// this call. Blocks until all ranks have come. Leaves no file and no name behind, however the processes end.
///
/// Errors    InvalidArgument if the rank is outside the world; Timeout that names the missing ranks; PeerLost;
///           DeviceError if the system gives no memory.
std::unique_ptr<ProcessGroup> make_shared_memory_group(Store& store, const SharedMemoryGroupOptions& options);

}  // namespace gradring::comm
