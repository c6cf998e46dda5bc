// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <vector>

#include "comm/error.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/transport/tcp/contact.h"
#include "comm/transport/tcp/mesh.h"
#include "comm/transport/tcp/socket_address.h"

namespace gradring::tests {

using comm::TcpSpec;
using comm::tcp::Contact;

inline constexpr std::chrono::seconds kLong(50);
inline constexpr std::chrono::milliseconds kShort(400);

inline TcpSpec spec_of(int rank, int world, const std::string& address = "127.0.0.1", std::uint16_t port = 0) {
  TcpSpec spec;
  spec.rank = rank;
  spec.world_size = world;
  spec.name = "test";
  spec.address = address;
  spec.port = port;
  return spec;
}

/// What one rank's joining came to.
struct Joined {
  std::vector<comm::tcp::Peer> peers;
  std::string error;  ///< "" if it came to peers
  int blamed = -1;
};

template <class E>
std::string name_if(const comm::CommError& error, const char* name) {
  return dynamic_cast<const E*>(&error) ? std::string(name) + ": " + error.what() : "";
}

inline Joined join(comm::Store& store, const TcpSpec& spec, std::chrono::nanoseconds timeout = kLong) {
  try {
    return {.peers = comm::tcp::connect_mesh(store, spec, Deadline::after(timeout)), .error = ""};
  } catch (const comm::CommError& error) {
    return {.peers = {},
            .error = name_if<comm::PeerLost>(error, "PeerLost") + name_if<comm::Timeout>(error, "Timeout") +
                     name_if<comm::Desync>(error, "Desync"),
            .blamed = error.peer()};
  }
}

inline Contact contact_in(comm::Store& store, int rank) {
  return Contact::parse(store.wait("tcp/test/" + std::to_string(rank), Deadline::after(kLong)));
}

/// Says for a rank that it is there, so that those below it begin to answer.
inline void announce(comm::Store& store, const TcpSpec& spec) {
  store.set("tcp/test/" + std::to_string(spec.rank),
            comm::tcp::contact_of_this_process(spec, comm::tcp::SocketAddress("127.0.0.1", 1)).to_text());
}

/// A connection to where that rank listens.
inline UniqueFd knock(comm::Store& store, int rank) {
  const Contact contact = contact_in(store, rank);
  return comm::tcp::begin_connect(comm::tcp::SocketAddress(contact.host, contact.port));
}

inline void say(const UniqueFd& socket, const std::string& bytes) {
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
