// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"
#include "comm/transport/tcp/mesh.h"
#include "comm/transport/tcp/socket_address.h"

namespace gradring::comm::tcp {

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
Endpoint local_endpoint(const TcpSpec& spec, const SocketAddress& listening);

/// Publishes this rank's endpoint and waits for those of all ranks, by rank.
///
/// Errors    Timeout that names all missing ranks; Desync if a rank has another world size or version.
std::vector<Endpoint> exchange_endpoints(Store& store, const TcpSpec& spec, const Endpoint& mine, Deadline deadline);

}  // namespace gradring::comm::tcp
