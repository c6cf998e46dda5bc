// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <ostream>
#include <string>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"

namespace gradring::tests {

/// A transport of ranks that rendezvous through a store.
enum class TransportKind { shared_memory, tcp };

struct Member {
  int rank = 0;
  int world_size = 1;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  std::string name = "group";
};

/// One rank's group over that transport.
std::unique_ptr<comm::ProcessGroup> join(TransportKind medium, comm::Store& store, const Member& member);

/// "SharedMemory" or "Tcp", for test names.
std::string name_of(TransportKind medium);
inline std::ostream& operator<<(std::ostream& out, TransportKind medium) { return out << name_of(medium); }

}  // namespace gradring::tests
