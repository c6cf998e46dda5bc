// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <vector>

#include "comm/rendezvous/store.h"
#include "comm/sockets/socket_address.h"
#include "comm/transport/error.h"
#include "comm/transports/tcp/mesh.h"

namespace gradring::tests {

using comm::TcpGroupOptions;
using comm::tcp::Endpoint;

inline constexpr std::chrono::seconds kLong(50);
inline constexpr std::chrono::milliseconds kShort(400);

inline TcpGroupOptions spec_of(int rank, int world, const std::string& address = "127.0.0.1", std::uint16_t port = 0) {
  TcpGroupOptions spec;
  spec.rank = rank;
  spec.world_size = world;
  spec.name = "test";
  spec.address = address;
  spec.port = port;
  return spec;
}

/// The result of one rank's join.
struct Joined {
  std::vector<comm::tcp::Peer> peers;
  std::string error;  ///< "" on success
  int failed_rank = -1;
};

template <class E>
std::string name_if(const comm::CommError& error, const char* name) {
  return dynamic_cast<const E*>(&error) ? std::string(name) + ": " + error.what() : "";
}

inline Joined join(comm::Store& store, const TcpGroupOptions& spec, std::chrono::nanoseconds timeout = kLong) {
  try {
    return {.peers = comm::tcp::connect_mesh(store, spec, Deadline::after(timeout)), .error = ""};
  } catch (const comm::CommError& error) {
    return {.peers = {},
            .error = name_if<comm::PeerLost>(error, "PeerLost") + name_if<comm::Timeout>(error, "Timeout") +
                     name_if<comm::Desync>(error, "Desync"),
            .failed_rank = error.peer()};
  }
}

inline Endpoint endpoint_in(comm::Store& store, int rank) {
  return Endpoint::parse(store.wait("tcp/test/" + std::to_string(rank), Deadline::after(kLong)));
}

/// Publishes an endpoint for a rank, so that lower ranks start to accept.
inline void publish_endpoint(comm::Store& store, const TcpGroupOptions& spec) {
  store.set("tcp/test/" + std::to_string(spec.rank),
            comm::tcp::local_endpoint(spec, comm::tcp::SocketAddress("127.0.0.1", 1)).to_text());
}

/// Publishes what the others take for rank 0's endpoint, and for its list of all ranks: an empty one, so that they read
/// each rank's.
inline void publish_rank_0(comm::Store& store, const Endpoint& endpoint) {
  store.set("tcp/test/0", endpoint.to_text());
  store.set("tcp/test/all/0", ".");
}

/// Connects to that rank's listener.
inline UniqueFd connect_to(comm::Store& store, int rank) {
  const Endpoint endpoint = endpoint_in(store, rank);
  return comm::tcp::begin_connect(comm::tcp::SocketAddress(endpoint.host, endpoint.port));
}

inline void send_text(const UniqueFd& socket, const std::string& bytes) {
  for (int turn = 0; turn < 1000; ++turn) {
    if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

inline void expect_connected(const Joined& one, int peer) {
  EXPECT_EQ(one.error, "");
  ASSERT_GT(one.peers.size(), static_cast<std::size_t>(peer));
  EXPECT_TRUE(one.peers[static_cast<std::size_t>(peer)].socket);
}

}  // namespace gradring::tests
