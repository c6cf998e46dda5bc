// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/support/transport_kind.h"

#include "comm/groups.h"

namespace gradring::tests {

std::unique_ptr<comm::ProcessGroup> join(TransportKind medium, comm::Store& store, const Member& member) {
  if (medium == TransportKind::tcp)
    return comm::make_tcp_group(
        store, {.rank = member.rank, .world_size = member.world_size, .timeout = member.timeout, .name = member.name});
  return comm::make_shared_memory_group(
      store, {.rank = member.rank, .world_size = member.world_size, .timeout = member.timeout, .name = member.name});
}

std::string name_of(TransportKind medium) { return medium == TransportKind::tcp ? "Tcp" : "SharedMemory"; }

}  // namespace gradring::tests
