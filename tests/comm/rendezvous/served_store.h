// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "comm/rendezvous/tcp_store.h"
#include "comm/rendezvous/tcp_store_server.h"
#include "comm/sockets/handshake.h"
#include "comm/sockets/socket_address.h"

namespace gradring::tests {

inline comm::tcp::Identity identity_of_rank(int rank, int world_size) {
  return {rank, world_size, comm::tcp::RunToken::from_secret("of a test")};
}

/// The port at 0.0.0.0 of a server that was told port 0.
inline int port_of(const comm::TcpStoreServer& server) {
  const std::string where = server.where();
  return std::stoi(where.substr(where.find(':') + 1));
}

/// Of a client of a server of this host.
inline comm::TcpStoreSpec client_spec(int port, const comm::tcp::Identity& self,
                                      std::chrono::nanoseconds timeout = std::chrono::seconds(50)) {
  const comm::tcp::SocketAddress address("127.0.0.1", static_cast<std::uint16_t>(port));
  return {.addresses = [address] { return std::vector{address}; },
          .where = address.to_string(),
          .self = self,
          .timeout = timeout};
}

}  // namespace gradring::tests
