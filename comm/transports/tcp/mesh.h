// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::comm {

struct TcpGroupOptions {
  int rank = 0;
  int world_size = 1;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< of the group
  std::string name = "group";  ///< prefix of this group's or transport's keys: equal on all ranks, unique in the store
  std::string address = "127.0.0.1";  ///< numeric, IPv4 or IPv6: the only address this rank listens on while it joins
  std::uint16_t port = 0;             ///< 0: any free port
  /// The ranks' shared secret, 64 hexadecimal digits. Empty: rank 0 generates it and sets it in the store.
  std::string token = {};
};

namespace tcp {

/// The connection to one peer.
struct Peer {
  UniqueFd socket;          ///< connected, non-blocking; empty for this rank itself
  std::string description;  ///< for example "process 4711 on node3"
};

/// Connects this rank to every other rank; the result is indexed by rank. All connections exist before the first
/// message, at the cost of one descriptor per peer. So every rank detects the end of any other, and no rank listens
/// while the ranks work.
///
/// Each rank listens at spec.address, publishes its endpoint in the store, connects to lower ranks and accepts
/// connections of higher ranks. Both sides authenticate (handshake.h). Unauthenticated connections are dropped after a
/// few seconds, and their number is limited. A world of one opens no socket.
///
/// The store must be private to the ranks unless spec.token is given: it holds the token.
///
/// Errors    InvalidArgument if the rank is outside the world, or the address is invalid or a wildcard; DeviceError if
///           it cannot listen there; Desync if a rank has another world size or version; Timeout that names the missing
///           ranks; PeerLost if a rank has ended.
std::vector<Peer> connect_mesh(Store& store, const TcpGroupOptions& spec, Deadline deadline);

/// A rank's address and identity, as published in the store.
struct Endpoint {
  int version = 1;
  int world_size = 1;
  std::string host;  ///< numeric
  std::uint16_t port = 0;
  int pid = 0;
  std::string token = "-";  ///< the run's token, if this is rank 0 and no token was given
  std::string node;         ///< the host's name, for messages only

  std::string to_text() const;
  /// Errors    DeviceError if the text is not a result of to_text.
  static Endpoint parse(const std::string& text);
  /// For example "process 4711 on node3".
  std::string description() const;
};

/// The endpoint of this process, which listens there. Rank 0 generates the run's token if the spec has none.
Endpoint local_endpoint(const TcpGroupOptions& spec, const SocketAddress& listening);

/// Publishes this rank's endpoint and waits for those of all ranks, by rank.
///
/// Errors    Timeout that names all missing ranks; Desync if a rank has another world size or version.
std::vector<Endpoint> exchange_endpoints(Store& store, const TcpGroupOptions& spec, const Endpoint& mine,
                                         Deadline deadline);

}  // namespace tcp
}  // namespace gradring::comm
