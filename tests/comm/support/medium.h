// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <ostream>
#include <string>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"

namespace gradring::tests {

/// What carries the bytes between ranks that meet through a store.
enum class Medium { shared_memory, tcp };

struct Member {
  int rank = 0;
  int world_size = 1;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  std::string name = "group";
};

/// The group of ranks over that medium, as one rank sees it.
std::unique_ptr<comm::ProcessGroup> join(Medium medium, comm::Store& store, const Member& member);

/// "SharedMemory", "Tcp": in the names of tests.
std::string name_of(Medium medium);
inline std::ostream& operator<<(std::ostream& out, Medium medium) { return out << name_of(medium); }

}  // namespace gradring::tests
