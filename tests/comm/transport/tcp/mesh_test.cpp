// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/mesh.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <thread>

#include "comm/error.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/transport/tcp/contact.h"
#include "comm/transport/tcp/run_token.h"
#include "comm/transport/tcp/socket_address.h"

namespace gradring::comm::tcp {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kLong(50);
constexpr std::chrono::milliseconds kShort(400);

TcpSpec spec_of(int rank, int world, const std::string& address = "127.0.0.1", std::uint16_t port = 0) {
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
  std::vector<Peer> peers;
  std::string error;  ///< "" if it came to peers
  int blamed = -1;
};

template <class E>
std::string name_if(const CommError& error, const char* name) {
  return dynamic_cast<const E*>(&error) ? std::string(name) + ": " + error.what() : "";
}

Joined join(Store& store, const TcpSpec& spec, std::chrono::nanoseconds timeout = kLong) {
  try {
    return {.peers = connect_mesh(store, spec, Deadline::after(timeout)), .error = ""};
  } catch (const CommError& error) {
    return {.peers = {},
            .error = name_if<PeerLost>(error, "PeerLost") + name_if<Timeout>(error, "Timeout") +
                     name_if<Desync>(error, "Desync"),
            .blamed = error.peer()};
  }
}

Contact contact_in(Store& store, int rank) {
  return Contact::parse(store.wait("tcp/test/" + std::to_string(rank), Deadline::after(kLong)));
}

/// Says for a rank that it is there, so that those below it begin to answer.
void announce(Store& store, const TcpSpec& spec) {
  store.set("tcp/test/" + std::to_string(spec.rank),
            contact_of_this_process(spec, SocketAddress("127.0.0.1", 1)).to_text());
}

/// A connection to where that rank listens.
UniqueFd knock(Store& store, int rank) {
  const Contact contact = contact_in(store, rank);
  return begin_connect(SocketAddress(contact.host, contact.port));
}

void say(const UniqueFd& socket, const std::string& bytes) {
  for (int turn = 0; turn < 1000; ++turn) {
    if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void expect_connected(const Joined& one, int peer) {
  EXPECT_EQ(one.error, "");
  ASSERT_GT(one.peers.size(), static_cast<std::size_t>(peer));
  EXPECT_TRUE(one.peers[static_cast<std::size_t>(peer)].socket);
}

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
      // Each end knows the other: what one says, the other hears on the socket that it keeps for it.
      const std::string word{static_cast<char>('a' + rank), static_cast<char>('a' + peer)};
      say(mine.peers[static_cast<std::size_t>(peer)].socket, word);
      char heard[2] = {};
      const Joined& theirs = joined[static_cast<std::size_t>(peer)];
      for (int turn = 0; turn < 1000 && heard[0] == 0; ++turn)
        if (::recv(theirs.peers[static_cast<std::size_t>(rank)].socket.get(), heard, 2, 0) < 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(std::string(heard, 2), word);
    }
}

TEST(TcpMesh, AWorldOfOneOpensNothing) {
  MemoryStore store;
  const Joined alone = join(store, spec_of(0, 1));
  EXPECT_EQ(alone.peers.size(), 1u);
  EXPECT_THROW(store.get("tcp/test/0"), InvalidArgument);
}

TEST(TcpMesh, StrangersAtTheDoorDoNotDisturb) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2)); });
  announce(store, spec_of(1, 2));
  std::vector<UniqueFd> strangers;
  const auto let_in = [&](const std::string& bytes) {
    strangers.push_back(knock(store, 0));
    say(strangers.back(), bytes);
  };
  let_in("GET / HTTP/1.1\r\n\r\n" + std::string(5000, 'x'));  // garbage, and more than is read
  let_in(std::string(200, '\xff'));
  for (int i = 0; i < 100; ++i) let_in("GRADRING");  // half a greeting, then silence: more than may stand there
  strangers.push_back(knock(store, 0));              // not a word
  strangers.push_back(knock(store, 0));
  strangers.back().reset();  // hangs up
  expect_connected(join(store, spec_of(1, 2)), 0);
  thread.join();
  expect_connected(zero, 1);
}

TEST(TcpMesh, NobodyListensOnceAllHaveCome) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2)); });
  const Joined one = join(store, spec_of(1, 2));
  thread.join();
  for (const int rank : {0, 1}) {
    const Contact contact = contact_in(store, rank);
    EXPECT_NO_THROW(listen_at(SocketAddress(contact.host, contact.port), 1)) << "somebody still listens there";
    const UniqueFd late = knock(store, rank);
    char byte = 0;
    EXPECT_LT(::send(late.get(), &byte, 1, MSG_NOSIGNAL), 0);
  }
}

TEST(TcpMesh, ARankWithAnotherTokenGetsNoFurther) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2), kShort); });
  announce(store, spec_of(1, 2));
  MemoryStore others;  // as the store of another run that has got hold of the address
  Contact contact = contact_in(store, 0);
  contact.token = RunToken::draw().to_text();
  others.set("tcp/test/0", contact.to_text());
  const Joined one = join(others, spec_of(1, 2));
  EXPECT_THAT(one.error, HasSubstr("PeerLost: what answers rank 1"));
  EXPECT_EQ(one.blamed, 0);
  thread.join();
  EXPECT_THAT(zero.error, HasSubstr("Timeout")) << "the true rank 1 never came";
  EXPECT_EQ(zero.blamed, 1);
}

TEST(TcpMesh, ARankThatHasEndedMeanwhileIsNamedAtOnce) {
  MemoryStore store;
  UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 1);
  const SocketAddress left = SocketAddress::of(listener);
  listener.reset();
  store.set("tcp/test/0", contact_of_this_process(spec_of(0, 2), left).to_text());
  const Joined one = join(store, spec_of(1, 2));
  EXPECT_THAT(one.error, HasSubstr("PeerLost: nobody listens at 127.0.0.1:"));
  EXPECT_EQ(one.blamed, 0);
}

TEST(TcpMesh, AnImpostorOnThePortOfARankIsFoundOut) {
  MemoryStore store;
  const UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 1);
  store.set("tcp/test/0", contact_of_this_process(spec_of(0, 2), SocketAddress::of(listener)).to_text());
  Joined one;
  std::thread thread([&] { one = join(store, spec_of(1, 2)); });
  UniqueFd socket;
  while (!(socket = accept_one(listener))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  say(socket, std::string(500, 'x'));
  thread.join();
  EXPECT_THAT(one.error, HasSubstr("is not rank 0 of this run"));
}

TEST(TcpMesh, ADoorThatIsShutInItsFaceIsTriedAgain) {
  MemoryStore store;
  const UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 8);
  store.set("tcp/test/0", contact_of_this_process(spec_of(0, 2), SocketAddress::of(listener)).to_text());
  Joined one;
  std::thread thread([&] { one = join(store, spec_of(1, 2), kLong); });
  for (int times = 0; times < 3;)  // as if too many strangers stood there
    if (const UniqueFd dropped = accept_one(listener)) ++times;
  UniqueFd socket;
  while (!(socket = accept_one(listener))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  say(socket, std::string(500, 'x'));
  thread.join();
  EXPECT_THAT(one.error, HasSubstr("is not rank 0 of this run")) << "it came back until somebody answered";
}

TEST(TcpMesh, AnotherWorldSizeIsReportedByBoth) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 3)); });
  const Joined one = join(store, spec_of(1, 2));
  thread.join();
  EXPECT_THAT(zero.error, HasSubstr("Desync: rank 0 is one of 3"));
  EXPECT_THAT(one.error, HasSubstr("Desync: rank 1 is one of 2"));
}

TEST(TcpMesh, AllMissingRanksAreNamed) {
  MemoryStore store;
  const Joined two = join(store, spec_of(2, 4), kShort);
  EXPECT_THAT(two.error, HasSubstr("for rank 0, 1, 3 of a world of 4 to join"));
}

TEST(TcpMesh, APortThatIsTakenIsAnErrorThatSaysSo) {
  MemoryStore store;
  const UniqueFd other = listen_at(SocketAddress("127.0.0.1", 0), 1);
  const std::uint16_t port = SocketAddress::of(other).port();
  try {
    connect_mesh(store, spec_of(0, 2, "127.0.0.1", port), Deadline::after(kLong));
    FAIL() << "it listens there, too";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("cannot listen at 127.0.0.1:" + std::to_string(port) + ": Address already in use"));
  }
}

TEST(TcpMesh, AnAddressOfAnotherHostIsAnErrorThatSaysSo) {
  MemoryStore store;
  EXPECT_THROW(connect_mesh(store, spec_of(0, 2, "192.0.2.1"), Deadline::after(kLong)), DeviceError);
}

TEST(TcpMesh, AddressesAreNumericAndOfOneInterface) {
  MemoryStore store;
  for (const char* address : {"localhost", "", "127.0.0.1:80", "0.0.0.0", "::", "no such thing"})
    EXPECT_THROW(connect_mesh(store, spec_of(0, 2, address), Deadline::after(kLong)), InvalidArgument) << address;
}

TEST(TcpMesh, OnePortServesOneMeetingAfterTheOther) {
  const std::uint16_t port = [] {
    const UniqueFd free = listen_at(SocketAddress("127.0.0.1", 0), 1);
    return SocketAddress::of(free).port();
  }();
  std::vector<Joined> kept;  // the connections of the first meeting are open during the second
  for (int meeting = 0; meeting < 2; ++meeting) {
    MemoryStore store;
    Joined zero;
    std::thread thread([&] { zero = join(store, spec_of(0, 2, "127.0.0.1", port)); });
    kept.push_back(join(store, spec_of(1, 2)));
    thread.join();
    expect_connected(zero, 1);
    EXPECT_EQ(contact_in(store, 0).port, port);
    kept.push_back(std::move(zero));
  }
}

TEST(TcpMesh, RanksMeetOverIPv6) {
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
  EXPECT_THAT(contact_in(store, 0).host, "::1");
}

}  // namespace
}  // namespace gradring::comm::tcp
