// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/rendezvous/store.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

struct SharedMemoryGroupOptions {
  int rank = 0;
  int world_size = 1;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< of the group
  std::string name = "group";  ///< prefix of this group's or transport's keys: equal on all ranks, unique in the store
};

/// The transport of one rank that is a process on this host. Each rank keeps its memory in one memfd; peers open it as
/// /proc/PID/fd/N, which they read from the store. The store is used only during this call.
///
/// Errors    InvalidArgument if the rank is outside the world; Timeout that names the missing ranks; PeerLost if a rank
///           dies meanwhile; DeviceError if memory cannot be allocated or opened.
std::unique_ptr<Transport> make_shared_memory_transport(Store& store, const SharedMemoryGroupOptions& spec,
                                                        Deadline deadline);

}  // namespace gradring::comm
