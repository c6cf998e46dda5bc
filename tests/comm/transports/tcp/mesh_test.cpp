// SPDX-License-Identifier: Apache-2.0
// Ranks that connect to each other, and errors that prevent it.
#include "comm/transports/tcp/mesh.h"

#include <gmock/gmock.h>

#include "tests/comm/transports/tcp/rendezvous_helpers.h"

namespace gradring::comm::tcp {
namespace {

using ::testing::HasSubstr;
using tests::connect_to;
using tests::endpoint_in;
using tests::expect_connected;
using tests::join;
using tests::Joined;
using tests::kLong;
using tests::kShort;
using tests::send_text;
using tests::spec_of;

TEST(TcpMesh, ConnectsEveryRankToEveryOther) {
  constexpr int kWorld = 5;
  MemoryStore store;
  std::vector<Joined> joined(kWorld);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorld; ++rank)
    threads.emplace_back([&, rank] { joined[static_cast<std::size_t>(rank)] = join(store, spec_of(rank, kWorld)); });
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < kWorld; ++rank)
    for (int peer = 0; peer < kWorld; ++peer) {
      if (peer == rank) continue;
      const Joined& mine = joined[static_cast<std::size_t>(rank)];
      expect_connected(mine, peer);
      // Both ends agree on the peer: a message arrives on the socket that the peer keeps for this rank.
      const std::string message{static_cast<char>('a' + rank), static_cast<char>('a' + peer)};
      send_text(mine.peers[static_cast<std::size_t>(peer)].socket, message);
      char received[2] = {};
      const Joined& theirs = joined[static_cast<std::size_t>(peer)];
      for (int turn = 0; turn < 1000 && received[0] == 0; ++turn)
        if (::recv(theirs.peers[static_cast<std::size_t>(rank)].socket.get(), received, 2, 0) < 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(std::string(received, 2), message);
    }
}

TEST(TcpMesh, OpensNoSocketForAWorldOfOne) {
  MemoryStore store;
  const Joined only = join(store, spec_of(0, 1));
  EXPECT_EQ(only.peers.size(), 1u);
  EXPECT_THROW(store.get("tcp/test/0"), InvalidArgument);
}

TEST(TcpMesh, StopsListeningOnceAllHaveJoined) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2)); });
  const Joined one = join(store, spec_of(1, 2));
  thread.join();
  for (const int rank : {0, 1}) {
    const Endpoint endpoint = endpoint_in(store, rank);
    EXPECT_NO_THROW(listen_at(SocketAddress(endpoint.host, endpoint.port), 1)) << "the port is still in use";
    const UniqueFd late = connect_to(store, rank);
    char byte = 0;
    EXPECT_LT(::send(late.get(), &byte, 1, MSG_NOSIGNAL), 0);
  }
}

TEST(TcpMesh, BothSidesReportDifferentWorldSizes) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 3)); });
  const Joined one = join(store, spec_of(1, 2));
  thread.join();
  EXPECT_THAT(zero.error, HasSubstr("Desync: ranks do not match: rank 0 has world size 3"));
  EXPECT_THAT(one.error, HasSubstr("Desync: ranks do not match: rank 1 has world size 2"));
}

TEST(TcpMesh, TimeoutNamesAllMissingRanks) {
  MemoryStore store;
  const Joined two = join(store, spec_of(2, 4), kShort);
  EXPECT_THAT(two.error, HasSubstr("for rank 0, 1, 3 of a world of 4 to join"));
}

TEST(TcpMesh, ReportsATakenPort) {
  MemoryStore store;
  const UniqueFd other = listen_at(SocketAddress("127.0.0.1", 0), 1);
  const std::uint16_t port = SocketAddress::of(other).port();
  try {
    connect_mesh(store, spec_of(0, 2, "127.0.0.1", port), Deadline::after(kLong));
    FAIL() << "it listens on a taken port";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("cannot listen at 127.0.0.1:" + std::to_string(port) + ": Address already in use"));
  }
}

TEST(TcpMesh, RejectsAnAddressOfAnotherHost) {
  MemoryStore store;
  EXPECT_THROW(connect_mesh(store, spec_of(0, 2, "192.0.2.1"), Deadline::after(kLong)), DeviceError);
}

TEST(TcpMesh, RejectsNamesAndWildcards) {
  MemoryStore store;
  for (const char* address : {"localhost", "", "127.0.0.1:80", "0.0.0.0", "::", "no such thing"})
    EXPECT_THROW(connect_mesh(store, spec_of(0, 2, address), Deadline::after(kLong)), InvalidArgument) << address;
}

TEST(TcpMesh, ReusesAFixedPort) {
  const std::uint16_t port = [] {
    const UniqueFd free = listen_at(SocketAddress("127.0.0.1", 0), 1);
    return SocketAddress::of(free).port();
  }();
  std::vector<Joined> kept;  // the connections of the first group are open while the second joins
  for (int group = 0; group < 2; ++group) {
    MemoryStore store;
    Joined zero;
    std::thread thread([&] { zero = join(store, spec_of(0, 2, "127.0.0.1", port)); });
    kept.push_back(join(store, spec_of(1, 2)));
    thread.join();
    expect_connected(zero, 1);
    EXPECT_EQ(endpoint_in(store, 0).port, port);
    kept.push_back(std::move(zero));
  }
}

TEST(TcpMesh, ConnectsOverIPv6) {
  try {
    listen_at(SocketAddress("::1", 0), 1);
  } catch (const DeviceError& error) {
    GTEST_SKIP() << "this host has no IPv6: " << error.what();
  }
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2, "::1")); });
  expect_connected(join(store, spec_of(1, 2, "::1")), 0);
  thread.join();
  EXPECT_THAT(endpoint_in(store, 0).host, "::1");
}

}  // namespace
}  // namespace gradring::comm::tcp
