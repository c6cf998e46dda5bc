// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::comm {

struct TcpSpec {
  int rank = 0;
  int world_size = 1;
  std::string name;  ///< of the transport, equal on all ranks and different from all others in the store
  std::string address = "127.0.0.1";  ///< where this rank is reached, numeric, IPv4 or IPv6: it listens there alone
  std::uint16_t port = 0;             ///< 0: any free one
};

namespace tcp {

/// What a rank knows of the rank at the other end of a connection.
struct Peer {
  UniqueFd socket;          ///< connected, non-blocking; none for this rank itself
  std::string description;  ///< "process 4711 on node3"
};

/// A connection to every other rank, by rank. All are there before the first message: a rank hears of every other's
/// end itself, at once, whoever its neighbours are in a schedule; and the listening socket is closed again, so that
/// nobody can knock while the ranks work. The price is a descriptor per peer.
///
/// Each rank listens at spec.address, says in the store where, dials the ranks below it and answers those above. Who
/// connects proves that it belongs to this run (handshake.h) before more is kept of it than that; a stranger is dropped
/// after a few seconds, and only so many may stand at the door. A world of one opens nothing.
///
/// Errors    InvalidArgument if the rank is outside the world, or the address is none or stands for all addresses;
///           DeviceError if it cannot listen there; Desync if a rank has another world size or version; Timeout that
///           names the missing ranks; PeerLost if one is gone again.
std::vector<Peer> connect_mesh(Store& store, const TcpSpec& spec, Deadline deadline);

}  // namespace tcp
}  // namespace gradring::comm
