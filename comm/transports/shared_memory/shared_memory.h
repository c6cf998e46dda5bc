// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "comm/rendezvous/store.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

struct SharedMemorySpec {
  int rank = 0;
  int world_size = 1;
  std::string name;  ///< of the transport: equal on all ranks, unique in the store
};

/// The transport of one rank that is a process on this host. Each rank keeps its memory in one memfd; peers open it as
/// /proc/PID/fd/N, which they read from the store. The store is used only during this call.
///
/// Errors    InvalidArgument if the rank is outside the world; Timeout that names the missing ranks; PeerLost if a rank
///           dies meanwhile; DeviceError if memory cannot be allocated or opened.
std::unique_ptr<Transport> make_shared_memory_transport(Store& store, const SharedMemorySpec& spec, Deadline deadline);

}  // namespace gradring::comm
